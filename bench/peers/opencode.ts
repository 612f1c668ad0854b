import { startOpenCodeService } from "./opencode-service.ts"
import { type Peer, writeConfig } from "./peer.ts"

const quiet = {
  OPENCODE_DISABLE_AUTOUPDATE: "1",
  OPENCODE_DISABLE_MODELS_FETCH: "1",
  OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
}

export const opencode: Peer = {
  name: "opencode",
  subject: (program) => ({
    name: "opencode",
    launcher: true,
    tools: {
      read: (filePath) => ({ name: "read", arguments: { filePath } }),
      bash: (command) => ({ name: "bash", arguments: { command, description: "Run the command" } }),
      write: (filePath, content) => ({ name: "write", arguments: { filePath, content } }),
    },
    prepare: ({ directory, url }) => writeConfig(directory, "opencode.json", config(url)),
    launch: ({ prompt }) => ({
      command: program,
      args: ["run", "--auto", "-m", "bench/m", prompt],
      env: quiet,
    }),
    async serve({ home, url }) {
      await writeConfig(home, "opencode.json", config(url))
      return startOpenCodeService(program, { home, env: quiet })
    },
    about: (flag) => ({ command: program, args: [flag], env: quiet }),
  }),
}

function config(baseURL: string) {
  const model = { name: "m", tool_call: true, limit: { context: 4_000_000, output: 64_000 } }
  const options = { baseURL, apiKey: "k" }
  const provider = { npm: "@ai-sdk/openai-compatible", name: "bench", options, models: { m: model } }
  return {
    autoupdate: false,
    share: "disabled",
    permission: "allow",
    model: "bench/m",
    small_model: "bench/m",
    provider: { bench: provider },
  }
}
