import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { startModelServer } from "../src/testing/model-server.ts"
import type { Reply } from "../src/testing/reply.ts"

/** Longest that a run may take, in milliseconds: a hundred times what it does. */
const runMs = 60_000

/**
 * Runs the built command a few times, so that what V8 compiles of it is kept (see `bin/load.cjs`) before the first
 * person runs it. A run keeps what it called: so these call what most runs do, with a scripted model. Throws where one
 * fails, with what it told.
 */
export async function warmCommand(root: string): Promise<void> {
  const workshop = mkdtempSync(join(tmpdir(), "tackle-warm-"))
  try {
    const server = await startModelServer({
      script: (_, index) => turns[index % turns.length] ?? { text: "Done." },
    })
    try {
      for (const args of runs) await run(args, { root, workshop, url: server.url })
    } finally {
      await server.close()
    }
  } finally {
    rmSync(workshop, { recursive: true, force: true, maxRetries: 3 })
  }
}

const runs = [
  ["run", "--auto", "--format", "json", "go"],
  ["run", "--auto", "go"],
  ["session", "list"],
  ["permission", "check", "bash", "git status"],
]

async function run(
  args: string[],
  { root, workshop, url }: { root: string; workshop: string; url: string },
): Promise<void> {
  const project = join(workshop, "project")
  cpSync(join(root, "examples/shop"), project, { recursive: true, force: true })
  const child = spawn(process.execPath, [join(root, "bin/tackle"), ...args], {
    cwd: project,
    env: {
      ...inherited(),
      HOME: workshop,
      TACKLE_DATA_DIR: join(workshop, "data"),
      TACKLE_CONFIG_CONTENT: JSON.stringify({
        model: "warm/m",
        provider: { warm: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
      }),
    },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: runMs,
  })
  const [told, failed, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "exit"),
  ])
  if (code !== 0) throw new Error(`tackle ${args.join(" ")}: exit code ${code}\n${failed}${told}`)
}

/** Nothing of the person's own that would decide what the command does, or how Node runs it. */
function inherited(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^(TACKLE_|XDG_|NODE_OPTIONS$)/.test(name))
  return Object.fromEntries(own)
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
