import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import type { RecordTree, RunningProcess } from "../util/process.ts"
import type { Bounds } from "./bounds.ts"
import {
  type Probe,
  type ProbeContext,
  type ProbeOutcome,
  type ProbeTargets,
  startTargets,
} from "./probe-context.ts"
import { probes } from "./probes.ts"
import { type Sandbox, startConfined } from "./sandbox.ts"

/** An attempt to escape the sandbox, and its outcome. */
export interface ProbeResult extends ProbeOutcome, Pick<Probe, "id" | "attempt"> {}

/** Time limit for one attempt, in milliseconds. */
const attemptMs = 10_000

/**
 * Makes all attempts to escape the sandbox, and checks their effects from outside the sandbox. Requires a working
 * sandbox. `record` records the programs, so that a later process can end them if this process is killed.
 */
export async function probeSandbox(sandbox: Sandbox, record?: RecordTree): Promise<ProbeResult[]> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "tackle-probe-")))
  const targets = await startTargets(root)
  try {
    // Runs the probes in parallel. Each probe has its own directory, and waits most of the time.
    return await Promise.all(
      probes.map(async ({ id, attempt, run }): Promise<ProbeResult> => {
        try {
          return { id, attempt, ...(await run(await prepare(join(root, id), { sandbox, targets, record }))) }
        } catch (error) {
          return { id, attempt, outcome: "untested", detail: errorMessage(error) }
        }
      }),
    )
  } finally {
    await targets.close()
    await rm(root, { recursive: true, force: true })
  }
}

/**
 * Creates a worktree with protected files, a directory outside the worktree, and functions that run programs in the
 * sandbox.
 */
async function prepare(
  root: string,
  { sandbox, targets, record }: { sandbox: Sandbox; targets: ProbeTargets; record: RecordTree | undefined },
): Promise<ProbeContext> {
  const inside = join(root, "inside")
  const outside = join(root, "outside")
  await mkdir(join(inside, "protected"), { recursive: true })
  await mkdir(outside)
  await writeFile(join(inside, "protected/file"), "kept\n")
  await writeFile(join(inside, "secret"), "hidden\n")
  await mkdir(join(inside, "private"))
  await writeFile(join(inside, "private/key"), "hidden\n")
  const bounds: Bounds = {
    writable: [inside],
    readOnly: [join(inside, "protected")],
    hidden: [join(inside, "secret"), join(inside, "private")],
    absent: [join(inside, "missing")],
    network: "closed",
  }

  async function start(argv: readonly [string, ...string[]], env: Record<string, string> = {}) {
    const confined = await sandbox.wrap(
      { argv, env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...env }, cwd: inside },
      bounds,
    )
    let output = ""
    const onOutput = (bytes: Uint8Array) => {
      output += Buffer.from(bytes).toString()
    }
    const process = await startConfined(confined, onOutput, { record })
    void process.closed.then(confined.ended).then(process.removeRecords)
    return { process, output: () => output }
  }

  return {
    inside,
    outside,
    targets,
    start: async (text) => (await start(["/bin/sh", "-c", text])).process,
    async run(text, env) {
      const { process, output } = await start(["/bin/sh", "-c", text], env)
      return finish(process, output)
    },
    async node(script) {
      const { process: child, output } = await start([process.execPath, "-e", script])
      return finish(child, output)
    },
  }
}

/** Waits for the process, kills its process tree and returns its output. */
async function finish(process: RunningProcess, output: () => string): Promise<string> {
  try {
    if (!(await within(process.exited, attemptMs))) throw new Error("the attempt timed out")
    await within(process.closed, attemptMs)
  } finally {
    await process.kill()
  }
  return output()
}
