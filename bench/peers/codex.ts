import { RunError } from "../run-subject.ts"
import { type Peer, writeConfig } from "./peer.ts"

export const codex: Peer = {
  name: "codex",
  subject: (program) => ({
    name: "codex",
    launcher: true,
    turn,
    // Codex reads files through its shell. For an unknown model, it has no tool to patch files.
    tools: {
      read: (path) => shell(`cat '${path}'`),
      bash: shell,
      write: () => {
        throw new RunError("offers no tool that writes a file")
      },
    },
    prepare: ({ home, url }) => writeConfig(home, ".codex/config.toml", config(url)),
    launch: ({ prompt }) => ({
      command: program,
      args: [
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        "--ephemeral",
        prompt,
      ],
      env: { BENCH_KEY: "k" },
    }),
    about: (flag) => ({ command: program, args: [flag] }),
  }),
}

/**
 * Returns the position in the script: the number of groups of calls in the conversation, or undefined for a request
 * without tools.
 */
function turn(body: Record<string, unknown>): number | undefined {
  if (!Array.isArray(body.tools) || body.tools.length === 0 || !Array.isArray(body.input)) return undefined
  const types = body.input.map((item: { type?: string }) => item.type ?? "message")
  return types.filter((type, at) => type === "function_call" && types[at - 1] !== "function_call").length
}

function shell(cmd: string) {
  return { name: "exec_command", arguments: { cmd } }
}

function config(url: string): string {
  return `model = "m"
model_provider = "bench"
check_for_update_on_startup = false
[model_providers.bench]
name = "bench"
base_url = "${url}"
wire_api = "responses"
env_key = "BENCH_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[analytics]
enabled = false
`
}
