import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { goOn, runArguments, type Survival } from "./crash.ts"
import { eventsIn, inspect, wrongAfterCrash, wrongAtEnd } from "./inspect.ts"
import { comesTrue, createPlace, processesIn } from "./place.ts"
import { prompt } from "./task.ts"

/** Command that mounts the file system of this machine. Further options replace parts of it. */
export const machineMounts = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]

/** Returns false without `bwrap`, or if the system does not allow mounts. */
export function canMount(): boolean {
  const [program = "", ...args] = [...machineMounts, "true"]
  try {
    execFileSync(program, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Runs a command, and then copies the data directory, whose disk ends with the run, to `kept`. */
const thenKeep = [
  "sh",
  "-c",
  'kept=$1; shift; "$@"; code=$?; cp -a "$TACKLE_DATA_DIR/." "$kept"; exit $code',
  "sh",
]

/**
 * Runs the task with its data directory on a disk of `size` KB, and continues it on a larger disk. `missed` is true if
 * the disk was large enough for the whole run.
 */
export async function fullDisk(size: number): Promise<Survival> {
  await using place = await createPlace()
  const kept = join(place.home, "kept")
  mkdirSync(kept)
  mkdirSync(place.data)
  const disk = [...machineMounts, "--size", String(size * 1024), "--tmpfs", place.data]
  const run = place.start([...runArguments, prompt], [...disk, ...thenKeep, kept])
  const { code } = await run.ended
  const missed = code === 0
  const wrong: string[] = []
  if (!missed) {
    const errors = eventsIn(run.said.stdout).flatMap((event) =>
      event.type === "session.error" ? [event.error.message] : [],
    )
    const said = [...errors, run.said.stderr].join("\n")
    if (code !== 1) wrong.push(`it ended with ${code}: ${said}`)
    if (!/is full|ENOSPC/.test(said)) wrong.push(`it does not say that the disk is full: ${said}`)
    if (/defect|\n +at /.test(run.said.stderr)) wrong.push(`it crashed: ${run.said.stderr}`)
  }
  if (!(await comesTrue(() => processesIn(place.directory).length === 0))) wrong.push("processes are left")

  cpSync(kept, place.data, { recursive: true })
  wrong.push(
    ...wrongAfterCrash(inspect(place.data), place, { stdout: run.said.stdout, isKept: () => true }),
    ...(await goOn(place)),
    ...wrongAtEnd(inspect(place.data), place),
  )
  return { moment: `on a disk of ${size} KB`, missed, wrong }
}

/** Reads a stored session whose data directory is read-only. Returns the problems. */
export async function readStored(): Promise<string[]> {
  await using place = await createPlace()
  await place.start([...runArguments, prompt]).ended
  const wrong: string[] = []
  for (const args of [["session", "list"], ["session", "show"], ["stats"]]) {
    const writable = place.start(args)
    await writable.ended
    const run = place.start(args, [...machineMounts, "--ro-bind", place.data, place.data])
    const { code } = await run.ended
    if (code !== 0) wrong.push(`${args.join(" ")} ended with ${code}`)
    if (run.said.stderr !== "") wrong.push(run.said.stderr)
    if (run.said.stdout === "" || run.said.stdout !== writable.said.stdout)
      wrong.push(`${args.join(" ")} differs`)
  }
  const change = place.start(["session", "fork"], [...machineMounts, "--ro-bind", place.data, place.data])
  if ((await change.ended).code !== 1) wrong.push("a change did not fail")
  return wrong
}

/** Makes two runs whose data directory is read-only: an empty directory, and one that was used before. */
export async function readOnly(): Promise<Survival> {
  await using place = await createPlace()
  const wrong: string[] = []
  for (const used of [false, true]) {
    if (used) await place.start(["session", "list"]).ended
    mkdirSync(place.data, { recursive: true })
    const before = readdirSync(place.data).join()
    const run = place.start(
      [...runArguments, prompt],
      [...machineMounts, "--ro-bind", place.data, place.data],
    )
    const { code } = await run.ended
    if (code !== 1) wrong.push(`it ended with ${code}`)
    if (!/^tackle: The database \S+ cannot be written .*TACKLE_DATA_DIR/.test(run.said.stderr))
      wrong.push(`it does not say what to do: ${run.said.stderr}`)
    if (run.said.stdout !== "" || place.server.requests.length > 0) wrong.push("something was started")
    if (readdirSync(place.data).join() !== before) wrong.push("something was written")
  }
  return { moment: "on a read-only disk", missed: false, wrong }
}
