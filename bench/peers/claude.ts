import type { Peer } from "./peer.ts"

const quiet = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  // As root, Claude Code accepts the permission flag below only in a sandbox. Here, the network is closed and the home
  // directory is private.
  IS_SANDBOX: "1",
}

export const claude: Peer = {
  name: "claude",
  subject: (program) => ({
    name: "claude",
    launcher: true,
    turn,
    tools: {
      read: (file_path) => ({ name: "Read", arguments: { file_path } }),
      bash: (command) => ({ name: "Bash", arguments: { command, description: "Run the command" } }),
      write: (file_path, content) => ({ name: "Write", arguments: { file_path, content } }),
    },
    launch: ({ prompt, port }) => ({
      command: program,
      args: ["-p", "--dangerously-skip-permissions", "--output-format", "json", prompt],
      env: { ...quiet, ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}` },
    }),
    about: (flag) => ({ command: program, args: [flag], env: quiet }),
  }),
}

/** Returns the position in the script: the number of answers with a call, or undefined for a request without tools. */
function turn(body: Record<string, unknown>): number | undefined {
  if (!Array.isArray(body.tools) || body.tools.length === 0 || !Array.isArray(body.messages)) return undefined
  const said: { content: string | { type: string }[] }[] = body.messages
  return said.filter(
    ({ content }) => Array.isArray(content) && content.some((block) => block.type === "tool_use"),
  ).length
}
