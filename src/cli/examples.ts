/**
 * Examples for the help of each command. `test/cli/help.test.ts` checks that each command has an example, and that the
 * flags in the examples exist.
 */
export const examples: Readonly<Record<string, readonly string[]>> = {
  run: [
    'tackle run "fix the failing test"',
    "git diff | tackle run --file CONTRIBUTING.md -",
    'tackle run -c --allow "bash:npm test" "now run the tests"',
    'tackle run --attach http://127.0.0.1:8486 "list the files"',
  ],
  send: ['tackle send "use tabs, not spaces"', 'tackle send --delivery queue "then update the docs"'],
  "queue list": ["tackle queue list --json"],
  "queue edit": ['tackle queue edit inp_0mwq03q1x000f3l0t9c1aa "then update the changelog"'],
  "queue move": ["tackle queue move inp_0mwq03q1x000f3l0t9c1aa 1"],
  "queue hold": ["tackle queue hold inp_0mwq03q1x000f3l0t9c1aa"],
  "queue release": ["tackle queue release inp_0mwq03q1x000f3l0t9c1aa"],
  "queue withdraw": ["tackle queue withdraw --all"],
  "queue resume": ["tackle queue resume"],
  web: ["tackle web", "tackle web --root ~/projects --no-open"],
  "db migrate": ["tackle db migrate --database postgres://tackle@db.example.com/tackle"],
  "db import": [
    "tackle db import --from ~/.local/share/tackle --database postgres://tackle@db.example.com/tackle",
  ],
  "agent list": ["tackle agent list --all"],
  "agent show": ["tackle agent show build"],
  "agent create": ['tackle agent create review --description "Reviews changes" --tools read,grep'],
  "tool list": ["tackle tool list --all"],
  "tool new": ["tackle tool new weather"],
  "tool types": ["tackle tool types"],
  "tool schema": ["tackle tool schema read"],
  "tool call": [`tackle tool call read '{"filePath":"README.md"}'`],
  "mcp list": ["tackle mcp list"],
  "mcp add": [
    "tackle mcp add tickets https://tickets.example.com/mcp",
    "tackle mcp add files --user -- npx -y @modelcontextprotocol/server-filesystem /srv/notes",
  ],
  "mcp auth": ["tackle mcp auth tickets"],
  "mcp logout": ["tackle mcp logout tickets"],
  "mcp serve": ["tackle mcp serve --tools read,grep", "tackle mcp serve --http --port 8080"],
  "permission check": ['tackle permission check bash "git push"', "tackle permission check edit src/app.ts"],
  "permission test": ["tackle permission test cases.jsonl"],
  "permission list": ["tackle permission list --json"],
  "permission revoke": ["tackle permission revoke --all"],
  "session list": ["tackle session list --all"],
  "session show": ["tackle session show"],
  "session export": ["tackle session export --sanitize >session.json"],
  "session import": ["tackle session import session.json --copy"],
  "session fork": ["tackle session fork"],
  "session compact": ["tackle session compact"],
  "session undo": ["tackle session undo", "tackle session undo --others"],
  "session redo": ["tackle session redo"],
  "session prune": ["tackle session prune --older-than 30d --dry-run"],
  "session delete": ["tackle session delete ses_0mwpzmd4e000y5wv1g2ol2"],
  stats: ["tackle stats --all"],
  "config show": ["tackle config show"],
  "config schema": ["tackle config schema >tackle.schema.json"],
  models: ["tackle models", "tackle models --forget-tools all"],
  "models check": ["tackle models check local/coder"],
  "auth login": ["tackle auth login anthropic"],
  "auth list": ["tackle auth list --json"],
  "auth logout": ["tackle auth logout anthropic"],
  attach: ["tackle attach http://127.0.0.1:8486", "tackle attach http://127.0.0.1:8486 -c"],
  serve: ["tackle serve", "tackle serve --port 8080 --root ~/projects --format json"],
  worker: [
    "tackle worker --database postgres://tackle@db.example.com/tackle --root ~/projects",
    "tackle worker --concurrency 32 --grace 60",
  ],
  gateway: ["tackle gateway --upstream http://127.0.0.1:8000/v1"],
  trust: ["tackle trust", "tackle trust --list"],
  doctor: ["tackle doctor"],
  completion: ["tackle completion bash >~/.local/share/bash-completion/completions/tackle"],
}

/** Returns the help text with examples for a command such as `session list`, or for a group such as `session`. */
export function examplesOf(name: string): string {
  const own = examples[name] ?? []
  const inner = Object.entries(examples).filter(([other]) => other.startsWith(`${name} `))
  const lines = own.length > 0 ? own : inner.flatMap(([, [first = ""]]) => first).slice(0, 3)
  return lines.length === 0 ? "" : `\nExamples:\n${lines.map((line) => `  ${line}\n`).join("")}`
}
