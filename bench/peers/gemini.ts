import { geminiFormat, geminiTurn } from "./gemini-format.ts"
import { type Peer, writeConfig } from "./peer.ts"

export const gemini: Peer = {
  name: "gemini",
  subject: (program) => ({
    name: "gemini",
    launcher: true,
    format: geminiFormat,
    turn: geminiTurn,
    tools: {
      read: (file_path) => ({ name: "read_file", arguments: { file_path } }),
      bash: (command) => ({
        name: "run_shell_command",
        arguments: { command, description: "Run the command" },
      }),
      write: (file_path, content) => ({ name: "write_file", arguments: { file_path, content } }),
    },
    prepare: ({ home }) => writeConfig(home, ".gemini/settings.json", settings),
    launch: ({ prompt, port }) => ({
      command: program,
      args: ["--yolo", "--skip-trust", "-m", "gemini-2.5-flash", "-p", prompt],
      env: { GEMINI_API_KEY: "k", GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${port}` },
    }),
    about: (flag) => ({ command: program, args: [flag] }),
  }),
}

const settings = {
  security: { auth: { selectedType: "gemini-api-key" } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
}
