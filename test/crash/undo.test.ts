import { cp, lstat, readdir, readFile, readlink, rm } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import type { Session } from "../../src/schema/session.ts"
import { isComplete } from "../runs.ts"
import { atFileCall, countFileCalls } from "./moment.ts"
import { createPlace, type Place } from "./place.ts"
import { canTrace } from "./power-cut.ts"

/** Changes, creates, removes and links files, and changes a mode. */
const command =
  "printf B > a.txt; mkdir -p new/deep; printf N > new/deep/made.txt; rm gone.sh; chmod 700 mode.txt; ln -sfn a.txt link; rm -r dir; printf F > dir"

const prepare =
  "printf A > a.txt; printf G > gone.sh; chmod 755 gone.sh; printf M > mode.txt; chmod 644 mode.txt; ln -s gone.sh link; mkdir dir; printf D > dir/file"

const bash = (command: string) => ({ calls: [{ name: "bash", arguments: { command } }] })

/** System calls that change the project or the database. */
const calls = ["rename", "link", "unlink", "fsync", "pwrite64"] as const

test.skipIf(!canTrace()).each(["undo", "redo"] as const)(
  "a killed %s is finished or reverted by the next start, whatever the moment",
  { timeout: 600_000 },
  async (direction) => {
    await using place = await createPlace({
      script: [bash(prepare), { text: "Prepared." }, bash(command), { text: "Done." }],
    })
    await ran(place, "run", "--auto", "prepare")
    const before = await contentOf(place.directory)
    await ran(place, "run", "--auto", "--continue", "change")
    const after = await contentOf(place.directory)
    expect(after).not.toEqual(before)
    if (direction === "redo") await ran(place, "session", "undo")
    const base = join(place.home, "base")
    for (const name of ["data", "directory"] as const)
      await cp(place[name], join(base, name), {
        recursive: true,
        verbatimSymlinks: true,
        preserveTimestamps: true,
      })

    const counts = await countFileCalls(
      place,
      async (program) => {
        expect(await place.start(["session", direction], program).ended).toMatchObject({ code: 0 })
      },
      calls,
    )
    const moments = [...counts].flatMap(([call, count]) =>
      Array.from({ length: count }, (_, index) => atFileCall(call, index + 1)),
    )
    const every = isComplete ? 1 : 20
    const first = Math.floor(Math.random() * every)
    for (const { name, program, reached } of moments.filter((_, index) => index % every === first)) {
      for (const kept of ["data", "directory"] as const) {
        for (const entry of await readdir(place[kept]))
          await rm(join(place[kept], entry), { recursive: true, force: true })
        await cp(join(base, kept), place[kept], {
          recursive: true,
          verbatimSymlinks: true,
          preserveTimestamps: true,
        })
      }
      const run = place.start(["session", direction], program)
      await reached(place, run)
      const [session] = await sessions(place)
      const isUndone = (session?.undone ?? []).length > 0
      const state = { name, restoring: session?.restoring, files: await contentOf(place.directory) }
      expect(state).toEqual({ name, restoring: undefined, files: isUndone ? before : after })
      await ran(place, "session", isUndone ? "redo" : "undo")
      expect(await contentOf(place.directory)).toEqual(isUndone ? after : before)
    }
  },
)

async function ran(place: Place, ...args: string[]): Promise<string> {
  const { said, ended } = place.start(args)
  expect({ ...(await ended), stderr: said.stderr }).toMatchObject({ code: 0 })
  return said.stdout
}

async function sessions(place: Place): Promise<Session[]> {
  return (JSON.parse(await ran(place, "session", "list", "--format", "json")) as { sessions: Session[] })
    .sessions
}

/** Returns the mode and content of each file, keyed by path. Includes temporary files that must not be left. */
async function contentOf(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const name of (await readdir(directory, { recursive: true })).sort()) {
    const path = join(directory, name)
    const stats = await lstat(path)
    if (stats.isSymbolicLink()) found[name] = `link to ${await readlink(path)}`
    else if (stats.isFile())
      found[name] = `${(stats.mode & 0o777).toString(8)} ${await readFile(path, "utf8")}`
    else found[name] = "directory"
  }
  return found
}
