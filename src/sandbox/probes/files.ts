import { existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { held, type Probe } from "../probe-scene.ts"

/** Attempts at files that may not be written, or not be read. */
export const fileProbes: readonly Probe[] = [
  {
    id: "write-outside",
    attempt: "write a file outside of the project",
    async run({ run, outside }) {
      await run(`echo x > ${outside}/file`)
      return held(!existsSync(join(outside, "file")))
    },
  },
  {
    id: "write-protected",
    attempt: "change a protected file of the project",
    async run({ run, inside }) {
      await run("echo x > protected/file; rm -rf protected/file")
      return held(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "create-protected",
    attempt: "make a protected directory that is missing",
    async run({ run, inside }) {
      await run("mkdir -p missing/deep; echo x > missing/file")
      return held(!existsSync(join(inside, "missing/file")) && !existsSync(join(inside, "missing/deep")))
    },
  },
  {
    id: "rename-protected",
    attempt: "move a protected directory away, or another over it",
    async run({ run, inside }) {
      await run("mkdir other; echo x > other/file; mv protected gone; mv -T other protected")
      return held(keeps(join(inside, "protected/file"), "kept\n"))
    },
  },
  {
    id: "link-swap",
    attempt: "write outside through a link",
    async run({ run, inside, outside }) {
      symlinkSync(outside, join(inside, "link"))
      await run(`echo x > link/one; ln -s ${outside} own; echo x > own/two; ln ${outside} hard`)
      return held(!existsSync(join(outside, "one")) && !existsSync(join(outside, "two")))
    },
  },
  {
    id: "read-denied",
    attempt: "read a file that is denied",
    run: async ({ run }) => held(!(await run("cat secret; cp secret copy; cat copy")).includes("hidden")),
  },
  {
    id: "read-replaced",
    attempt: "read a file of a hidden directory that is replaced meanwhile",
    async run({ run, inside }) {
      const ended = run(
        "cat private/*; : > ready; n=0; until [ -e go ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; cat private/*",
      )
      for (let tries = 0; tries < 100 && !existsSync(join(inside, "ready")); tries++) await delay(20)
      writeFileSync(join(inside, "private/new"), "hidden\n")
      renameSync(join(inside, "private/new"), join(inside, "private/key"))
      writeFileSync(join(inside, "go"), "")
      return held(!(await ended).includes("hidden"))
    },
  },
]

function keeps(path: string, text: string): boolean {
  return existsSync(path) && readFileSync(path, "utf8") === text
}
