import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import type { RunningProcess } from "../util/process.ts"
import type { Bounds } from "./bounds.ts"
import type { Probe, ProbeOutcome, ProbeScene } from "./probe-scene.ts"
import { type Surroundings, startSurroundings } from "./probe-surroundings.ts"
import { fileProbes } from "./probes/files.ts"
import { networkProbes } from "./probes/network.ts"
import { processProbes } from "./probes/processes.ts"
import { type Sandbox, startConfined } from "./sandbox.ts"

/** What one attempt to get out came to. */
export interface ProbeResult extends ProbeOutcome, Pick<Probe, "id" | "attempt"> {}

/** Each has a scene of its own. */
const probes: readonly Probe[] = [...fileProbes, ...networkProbes, ...processProbes]

/** Longest a single attempt may take, in milliseconds. */
const attemptMs = 10_000

/**
 * Attempts, inside a real sandbox, everything that a sandbox has to prevent, and looks outside at what came of it.
 * Takes as long as the slowest, some three seconds: one program has to be killed that does not want to end. The caller
 * makes sure that the sandbox works.
 */
export async function probeSandbox(sandbox: Sandbox): Promise<ProbeResult[]> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "tackle-probe-")))
  const surroundings = await startSurroundings(root)
  try {
    // Side by side: each has a directory of its own, and most of the time they wait.
    return await Promise.all(
      probes.map(async ({ id, attempt, run }): Promise<ProbeResult> => {
        try {
          const scene = await prepare(join(root, id), sandbox, surroundings)
          return { id, attempt, ...(await run(scene)) }
        } catch (error) {
          return { id, attempt, outcome: "untested", detail: errorMessage(error) }
        }
      }),
    )
  } finally {
    await surroundings.close()
    await rm(root, { recursive: true, force: true })
  }
}

/** A worktree with what is worth protecting, a directory beside it, and a way to run a text in the sandbox. */
async function prepare(root: string, sandbox: Sandbox, surroundings: Surroundings): Promise<ProbeScene> {
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
    const process = await startConfined(confined, (bytes) => {
      output += Buffer.from(bytes).toString()
    })
    void process.closed.then(confined.ended)
    return { process, output: () => output }
  }

  return {
    inside,
    outside,
    surroundings,
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

/** Ends it, with what it started, when it ended or took too long. */
async function finish(process: RunningProcess, output: () => string): Promise<string> {
  try {
    if (!(await within(process.exited, attemptMs))) throw new Error("the attempt took too long")
    await within(process.closed, attemptMs)
  } finally {
    await process.kill()
  }
  return output()
}
