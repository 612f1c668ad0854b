import { accessSync, constants } from "node:fs"
import { mkdir, writeFile } from "node:fs/promises"
import { delimiter, join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { startGateway } from "../../src/gateway/server.ts"
import { httpFetch } from "../../src/model/http-fetch.ts"
import type { ModelRequestBody } from "../../src/testing/model-server.ts"
import type { Reply, ScriptedCall } from "../../src/testing/reply.ts"
import type { Ended } from "./run-shared.ts"
import { createMachine, type Machine, tackleCommand } from "./run-tackle.ts"

/** These tests need the programs of other vendors: npm install --global @openai/codex @anthropic-ai/claude-code */
const codexTest = test.skipIf(!isInstalled("codex"))
const claudeTest = test.skipIf(!isInstalled("claude"))

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

const timeoutMs = 90_000
const task = "Write the word of in.txt in capitals to out.txt."

describe("through tackle gateway and a model without tool calling", () => {
  codexTest("codex finishes a task over files (needs codex)", { timeout: timeoutMs }, async () => {
    const machine = await createMachine({
      files: { "in.txt": "plum\n" },
      script: ({ body }) =>
        textOnly(body, [
          `I look first.\n${written({ name: "exec_command", arguments: { cmd: "cat in.txt" } })}`,
          written({ name: "exec_command", arguments: { cmd: "tr a-z A-Z < in.txt > out.txt" } }),
          "It is done.",
        ]),
    })
    const { code, stdout } = await runCodex(machine, await gatewayFor(machine), {
      flags: ["--dangerously-bypass-approvals-and-sandbox"],
    })
    expect([code, stdout.trim()]).toEqual([0, "It is done."])
    expect(await machine.project.read("out.txt")).toBe("PLUM\n")
  })

  claudeTest("Claude Code finishes a task over files (needs claude)", { timeout: timeoutMs }, async () => {
    const machine: Machine = await createMachine({
      files: { "in.txt": "plum\n" },
      script: ({ body }) => {
        const { path } = machine.project
        return textOnly(body, [
          `I look first.\n${written({ name: "Read", arguments: { file_path: path("in.txt") } })}`,
          written({ name: "Write", arguments: { file_path: path("out.txt"), content: "PLUM\n" } }),
          "It is done.",
        ])
      },
    })
    const { code, stdout } = await runClaude(machine, (await gatewayFor(machine)).replace(/\/v1$/, ""), [
      "--permission-mode",
      "acceptEdits",
      "--model",
      "m",
    ])
    expect([code, stdout]).toEqual([0, expect.stringContaining("It is done.")])
    expect(await machine.project.read("out.txt")).toBe("PLUM\n")
  })
})

describe("with the tools of tackle mcp serve", () => {
  const read = { name: "read", arguments: { filePath: "in.txt" } }
  const write = { name: "write", arguments: { filePath: "out.txt", content: "x" } }

  codexTest(
    "codex reads in its read-only sandbox, and does not write (needs codex)",
    { timeout: timeoutMs },
    async () => {
      const own = (call: ScriptedCall): Reply => ({ calls: [{ ...call, namespace: "mcp__tackle" }] })
      const replies = [own(read), own(write), { text: "It is done." }]
      const machine = await createMachine({
        files: { "in.txt": "plum\n" },
        script: ({ body }) => replies[itemsOf(body, "function_call_output")] ?? {},
      })
      const { code } = await runCodex(machine, machine.server.url, {
        flags: ["--sandbox", "read-only"],
        config: `[mcp_servers.tackle]\ncommand = ${JSON.stringify(tackleCommand)}\nargs = ["mcp", "serve"]\nrequired = true\n`,
      })
      expect(code).toBe(0)
      const outputs = JSON.stringify(machine.server.requests.at(-1)?.body.input)
      expect(outputs).toMatch(/1→plum.*approval/)
      await expect(machine.project.read("out.txt")).rejects.toThrow("ENOENT")
    },
  )

  claudeTest(
    "Claude Code reads in plan mode, and does not write (needs claude)",
    { timeout: timeoutMs },
    async () => {
      const own = (call: ScriptedCall): Reply => ({ calls: [{ ...call, name: `mcp__tackle__${call.name}` }] })
      const replies = [own(read), own(write), { text: "It is done." }]
      const machine = await createMachine({
        files: { "in.txt": "plum\n" },
        script: ({ body }) => replies[itemsOf(body, "tool_result")] ?? {},
      })
      const servers = { mcpServers: { tackle: { command: tackleCommand, args: ["mcp", "serve"] } } }
      const { code } = await runClaude(machine, machine.server.url.replace(/\/v1$/, ""), [
        ...["--permission-mode", "plan", "--strict-mcp-config", "--mcp-config", JSON.stringify(servers)],
        // Both are allowed, so that only the annotations decide in plan mode.
        ...["--allowedTools", "mcp__tackle__read,mcp__tackle__write"],
      ])
      expect(code).toBe(0)
      expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).toMatch(/1→plum.*plan mode/)
      await expect(machine.project.read("out.txt")).rejects.toThrow("ENOENT")
    },
  )
})

/** The reply of a model without tool calling, which has one text for each number of results. */
function textOnly(body: ModelRequestBody, texts: string[]): Reply {
  if (body.tools !== undefined) return { status: 400, text: "m does not support tools" }
  const results = JSON.stringify(body.messages).split("<tool_response ").length - 1
  return { text: texts[results] ?? "", pieceSize: 7 }
}

function written(call: ScriptedCall): string {
  return `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`
}

/** Returns the number of results in a request. */
function itemsOf(body: Record<string, unknown>, type: string): number {
  return JSON.stringify(body).split(`"type":"${type}"`).length - 1
}

async function gatewayFor({ server }: Machine): Promise<string> {
  const gateway = await startGateway({ upstream: server.url, policy: "auto", port: 0, fetch: httpFetch })
  onTestFinished(() => gateway.close())
  return gateway.url
}

async function runCodex(
  machine: Machine,
  baseURL: string,
  { flags, config = "" }: { flags: string[]; config?: string },
): Promise<Ended> {
  await mkdir(join(machine.home, ".codex"))
  await writeFile(
    join(machine.home, ".codex/config.toml"),
    `model = "m"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "${baseURL}"
wire_api = "responses"
env_key = "LOCAL_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
${config}`,
  )
  return await machine.run(["exec", "--skip-git-repo-check", ...flags, task], {
    command: ["codex"],
    env: { LOCAL_KEY: "k" },
    timeoutMs,
  })
}

async function runClaude(machine: Machine, baseURL: string, flags: string[]): Promise<Ended> {
  return await machine.run(["-p", ...flags, "--", task], {
    command: ["claude"],
    env: {
      ANTHROPIC_BASE_URL: baseURL,
      ANTHROPIC_API_KEY: "k",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
    },
    timeoutMs,
  })
}
