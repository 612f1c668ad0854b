import { describe, expect, test } from "vitest"
import { ConfigError, describeProblem } from "../../src/config/errors.ts"
import { readLayer } from "../../src/config/read-layer.ts"

/** Returns the problem of a file with this line, without the file name. */
async function told(text: string, name = "tackle.json"): Promise<string> {
  const source = { path: `/p/${name}`, kind: "tackle", scope: "user", hash: "", trusted: true, text } as const
  const location = { directory: "/p", worktree: "/p", home: "/h", environment: {} }
  const problems = await readLayer(source, location).then(
    (layer) => layer.problems,
    (error: unknown) => {
      if (!(error instanceof ConfigError)) throw error
      return error.problems
    },
  )
  return problems.map(describeProblem).join("\n").replaceAll(`/p/${name}:`, "") || "nothing"
}

describe("a problem names its location and key, what was found and what to write instead", () => {
  const object = "an object ({…})"
  const list = "a list ([…])"
  test.each<[string, string]>([
    // Keys.
    ['{"modle": "a/b"}', '1:2: unknown key "modle". Did you mean "model"?'],
    [
      '{"provider": {"openai": {"apiKey": "x"}}}',
      '1:26: unknown key "provider.openai.apiKey". It belongs in "provider.openai.options".',
    ],
    [
      '{"mcp": {"a": {"type": "local", "command": ["x"], "env": {}}}}',
      '1:51: unknown key "mcp.a.env". Known keys: type, command, environment, enabled, timeout, callTimeout.',
    ],
    [
      '{"permission": {"bash": {"a": {"actions": "ask"}}}}',
      '1:32: unknown key "permission.bash.a.actions". Did you mean "action"?',
    ],
    // Types of values.
    [
      '{"model": "gpt-5"}',
      "1:2: model: expected provider/model, found another string. Model to use, as provider/model.",
    ],
    ['{"model": 5}', "1:2: model: expected a string, found a number. Write it in quotes."],
    [
      '{"instructions": "A.md"}',
      `1:2: instructions: expected ${list}, found a string. Write it in brackets: ["…"].`,
    ],
    ['{"secrets": [""]}', "1:14: secrets[0]: expected a non-empty string, found an empty string."],
    [
      '{"tools": ["bash"]}',
      `1:2: tools: expected ${object}, found a list. Tools by id: false removes a tool.`,
    ],
    [
      '{"tools": {"bash": "false"}}',
      "1:12: tools.bash: expected true or false, found a string. Write it without quotes.",
    ],
    [
      '{"timeout": 30}',
      `1:2: timeout: expected ${object}, found a number. Timeouts for requests to providers.`,
    ],
    [
      '{"retry": {"maxAttempts": "3"}}',
      "1:12: retry.maxAttempts: expected a number, found a string. Write it without quotes.",
    ],
    [
      '{"truncate": {"maxLines": 1.5}}',
      "1:15: truncate.maxLines: expected a whole number, found 1.5. Maximum lines of tool output sent to the model (default 2000).",
    ],
    [
      '{"agent": {"a": {"temperature": 3}}}',
      "1:18: agent.a.temperature: expected a number of at most 2, found 3. Sampling temperature.",
    ],
    ['{"agent": {"a": "x"}}', `1:12: agent.a: expected ${object}, found a string.`],
    [
      '{"plugin": [["x"]]}',
      "1:13: plugin[0]: expected a string or a list of at least 2 items, found a list.",
    ],
    [
      '{"lsp": {"a": {"extensions": ["ts"]}}}',
      '1:31: lsp.a.extensions[0]: expected a string that begins with a dot, such as ".ts", found another string.',
    ],
    // Names.
    [
      '{"tenants": {"a b": {}}}',
      '1:14: tenants.a b: the key must be 1 to 64 letters, digits, ".", "_" or "-", or *.',
    ],
    [
      '{"agent": {"a": {"mode": "primry"}}}',
      '1:18: agent.a.mode: expected "primary", "subagent" or "all", found another string. Did you mean "primary"?',
    ],
    [
      '{"mcp": {"a": {"type": "stdio", "command": ["x"]}}}',
      '1:16: mcp.a.type: expected "local" or "remote", found another string.',
    ],
    ['{"mcp": {"a": {"command": ["x"]}}}', '1:10: mcp.a.type is missing: expected "local" or "remote".'],
    [
      '{"mcp": {"a": {"type": "remote"}}}',
      "1:10: mcp.a.url is missing: expected a string. URL of the server.",
    ],
    [
      '{"mcp": {"a": {"type": "remote", "url": "a.b"}}}',
      "1:34: mcp.a.url: expected a URL that starts with http:// or https://, found another string. URL of the server.",
    ],
    [
      '{"permission": {"bash": ["npm"]}}',
      '1:17: permission.bash: expected "allow", "ask" or "deny", or an object that maps patterns to these values, found a list.',
    ],
    // Syntax.
    ['{"model": "a/b",,}', '1:17: expected a key in double quotes, found ",".'],
    [
      "{model: 1}",
      "1:2: expected a key or string in double quotes, a number, true, false or null, found a word without quotes.",
    ],
    [
      "{'model': 1}",
      "1:2: expected a key or string in double quotes, a number, true, false or null, found a single quote.",
    ],
    ['{"model": "a/b"', '1:16: expected "}", found the end of the file: a closing bracket is missing.'],
    [
      '{"model": "a/b" "shell": "x"}',
      '1:17: expected "," or a closing bracket, found a string in double quotes.',
    ],
  ])("%s", async (text, expected) => {
    expect(await told(text)).toBe(expected)
  })

  test("applies to TOML and front matter too", async () => {
    expect(await told('[retry]\nmaxAttempts = "3"', "tackle.toml")).toBe(
      "2:1: retry.maxAttempts: expected a number, found a string. Write it without quotes.",
    )
    expect(await told("---\nmode: primry\n---\n", ".tackle/agent/a.md")).toContain('Did you mean "primary"?')
  })

  test("never contains a secret", async () => {
    const text = '{"provider": {"a": {"options": {"apiKey": 4711, "headers": "4711"}}}, "secrets": "4711"}'
    const message = await told(text)
    expect(message.split("\n")).toHaveLength(3)
    expect(message).not.toContain("4711")
  })
})
