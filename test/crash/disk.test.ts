import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { goOn, runArguments } from "./crash.ts"
import { eventsIn, inspect, wrongAfterCrash, wrongAtEnd } from "./inspect.ts"
import { comesTrue, createPlace, processesIn } from "./place.ts"
import { prompt } from "./task.ts"

/** The whole machine as it is, but for what the options after it put in its place. */
const machine = ["bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev"]

const hasMounts = works([...machine, "true"])

function works([program = "", ...args]: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** What is on a disk that goes with the run stays in `kept`. */
const thenKeep = [
  "sh",
  "-c",
  'kept=$1; shift; "$@"; code=$?; cp -a "$TACKLE_DATA_DIR/." "$kept"; exit $code',
  "sh",
]

/** From too small for the tables to enough for half of the run, in KB. */
test.skipIf(!hasMounts).each([16, 160, 512])(
  "a run whose disk of %i KB is full ends with that, and is gone on with when there is room again",
  async (size) => {
    await using place = await createPlace()
    const kept = join(place.home, "kept")
    mkdirSync(kept)
    mkdirSync(place.data)
    const disk = [...machine, "--size", String(size * 1024), "--tmpfs", place.data]
    const run = place.start([...runArguments, prompt], [...disk, ...thenKeep, kept])
    const { code } = await run.ended
    const errors = eventsIn(run.said.stdout).flatMap((event) =>
      event.type === "session.error" ? [event.error.message] : [],
    )
    expect(code, run.said.stderr).toBe(1)
    expect([...errors, run.said.stderr].join("\n")).toMatch(/is full|ENOSPC/)
    expect(run.said.stderr).not.toMatch(/defect|\n +at /)
    expect(await comesTrue(() => processesIn(place.directory).length === 0)).toBe(true)

    cpSync(kept, place.data, { recursive: true })
    const remains = inspect(place.data)
    expect(wrongAfterCrash(remains, place, { stdout: run.said.stdout, isKept: () => true })).toEqual([])
    expect(await goOn(place)).toEqual([])
    expect(wrongAtEnd(inspect(place.data), place)).toEqual([])
  },
)

test.skipIf(!hasMounts)(
  "a read-only data directory is named with the way out, and nothing is begun",
  async () => {
    await using place = await createPlace()
    for (const there of [[], readdirSync(import.meta.dirname).slice(0, 1)]) {
      if (there.length > 0) await place.start(["session", "list"]).ended
      mkdirSync(place.data, { recursive: true })
      const before = readdirSync(place.data)
      const run = place.start([...runArguments, prompt], [...machine, "--ro-bind", place.data, place.data])
      expect((await run.ended).code).toBe(1)
      expect(run.said).toEqual({
        stdout: "",
        stderr: expect.stringMatching(/^tackle: The database \S+ cannot be written .*TACKLE_DATA_DIR/),
      })
      expect(place.server.requests).toEqual([])
      expect(readdirSync(place.data)).toEqual(before)
    }
  },
)
