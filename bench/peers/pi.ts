import { type Peer, writeConfig } from "./peer.ts"

export const pi: Peer = {
  name: "pi",
  subject: (program) => ({
    name: "pi",
    launcher: true,
    tools: {
      read: (path) => ({ name: "read", arguments: { path } }),
      bash: (command) => ({ name: "bash", arguments: { command } }),
      write: (path, content) => ({ name: "write", arguments: { path, content } }),
    },
    prepare: ({ home, url }) => writeConfig(home, ".pi/agent/models.json", models(url)),
    launch: ({ prompt }) => ({
      command: program,
      args: ["-p", "--offline", "--provider", "bench", "--model", "m", "--no-session", prompt],
      env: { PI_OFFLINE: "1" },
    }),
    about: (flag) => ({ command: program, args: [flag], env: { PI_OFFLINE: "1" } }),
  }),
}

function models(baseUrl: string) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  const model = { id: "m", name: "m", contextWindow: 4_000_000, maxTokens: 64_000, input: ["text"], cost }
  return { providers: { bench: { baseUrl, apiKey: "k", api: "openai-completions", models: [model] } } }
}
