import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { startModelServer } from "../src/testing/model-server.ts"
import type { Reply } from "../src/testing/reply.ts"

/**
 * Runs the built command a few times, so that what V8 compiles of it is kept (see `bin/load.cjs`) before the first
 * person runs it. A run keeps what it called: so these call what most runs do, with a scripted model.
 */
export async function warmCommand(root: string): Promise<void> {
  const workshop = mkdtempSync(join(tmpdir(), "tackle-warm-"))
  const project = join(workshop, "project")
  const server = await startModelServer({
    script: (_, index) => turns[index % turns.length] ?? { text: "Done." },
  })
  const env = {
    PATH: process.env.PATH,
    HOME: workshop,
    TACKLE_DATA_DIR: join(workshop, "data"),
    TACKLE_CONFIG_CONTENT: JSON.stringify({
      model: "warm/m",
      provider: { warm: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    }),
  }
  try {
    await run("run", "--auto", "--format", "json", "go")
    await run("run", "--auto", "go")
    await run("session", "list")
    await run("permission", "check", "bash", "git status")
  } finally {
    await server.close()
    rmSync(workshop, { recursive: true, force: true, maxRetries: 3 })
  }

  async function run(...args: string[]): Promise<void> {
    const bundle = { entry: join(root, "dist/cli/main.cjs"), cache: join(root, "dist/.cache"), renew: true }
    const program = `require(${JSON.stringify(join(root, "bin/load.cjs"))}).runBundle(${JSON.stringify(bundle)})`
    cpSync(join(root, "examples/shop"), project, { recursive: true, force: true })
    const child = spawn(process.execPath, ["-e", program, "tackle", ...args], {
      cwd: project,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    })
    const [told, [code]] = await Promise.all([text(child.stderr), once(child, "exit")])
    if (code !== 0) throw new Error(`tackle ${args.join(" ")}: exit code ${code}\n${told}`)
  }
}

/** A reading, a writing and a working turn, and an answer. */
const turns: Reply[] = [
  {
    calls: [
      { name: "list", arguments: {} },
      { name: "glob", arguments: { pattern: "**/*.js" } },
      { name: "grep", arguments: { pattern: "TODO" } },
      { name: "read", arguments: { filePath: "src/cart.js" } },
    ],
  },
  {
    calls: [
      {
        name: "edit",
        arguments: { filePath: "src/cart.js", oldString: "(1 + discount)", newString: "(1 - discount)" },
      },
      { name: "write", arguments: { filePath: "src/new.js", content: "export const answer = 42\n" } },
      { name: "bash", arguments: { command: "ls src | wc -l; printf 'done\\n'" } },
    ],
  },
  {
    calls: [
      { name: "bash", arguments: { command: "cp src/new.js src/copy.js && cat src/copy.js" } },
      { name: "todowrite", arguments: { todos: [{ content: "Look at it", status: "pending" }] } },
    ],
  },
  { text: "All is **done**:\n\n- one\n- two\n" },
]
