import { messagesFormat, messagesTurn } from "./messages-format.ts"
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
    format: messagesFormat,
    turn: messagesTurn,
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
