import { chatTurn, toolNames } from "../chat-turn.ts"
import { type Peer, writeConfig } from "./peer.ts"

export const qwen: Peer = {
  name: "qwen",
  subject: (program) => ({
    name: "qwen",
    launcher: true,
    // A second conversation, about memory, also has tools, but no `agent` tool.
    turn: (body) => (toolNames(body).includes("agent") ? chatTurn(body) : undefined),
    tools: {
      read: (file_path) => ({ name: "read_file", arguments: { file_path } }),
      bash: (command) => ({ name: "run_shell_command", arguments: { command, is_background: false } }),
      write: (file_path, content) => ({ name: "write_file", arguments: { file_path, content } }),
    },
    prepare: ({ home }) => writeConfig(home, ".qwen/settings.json", settings),
    launch: ({ prompt, url }) => ({
      command: program,
      args: ["--yolo", "-p", prompt],
      env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: url, OPENAI_MODEL: "m" },
    }),
    about: (flag) => ({ command: program, args: [flag] }),
  }),
}

const settings = {
  security: { auth: { selectedType: "openai" } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
}
