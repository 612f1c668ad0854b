import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import fc from "fast-check"
import { expect, test } from "vitest"
import { putBack, UndoRefusedError } from "../../src/files/put-back.ts"
import { defaultScanLimits } from "../../src/files/scan.ts"
import { untracked } from "../../src/files/temporary-files.ts"
import { type ChangeCapability, createTurnChanges } from "../../src/files/turn-changes.ts"
import type { FileChange } from "../../src/schema/part.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { runs } from "../runs.ts"

const names = ["a", "b", "d/c"]

/** The content of a file. Undefined removes the file. */
const bytes = fc.constantFrom("", "1", "2", "3", "\u0000\r\n4", undefined)
const change = { name: fc.constantFrom(...names), bytes }
const action = fc.oneof(
  fc.record({ kind: fc.constant("tool" as const), ...change }),
  fc.record({ kind: fc.constant("command" as const), ...change }),
  fc.record({ kind: fc.constant("user" as const), ...change }),
  fc.record({ kind: fc.constantFrom(...(["new turn", "undo", "redo"] as const)) }),
)

type State = Record<string, string | undefined>

test("undoes and redoes random changes exactly, or refuses", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 3, maxLength: 14 }), async (actions) => {
      const project = await temporaryProject()
      const data = project.path(".data")
      const contents = createContentDirectory(data)
      const at = (name: string) => project.path("tree", name)
      mkdirSync(project.path("tree", "d"), { recursive: true })
      for (const name of names) writeFileSync(at(name), "0")
      const state = (): State =>
        Object.fromEntries(
          names.map((name) => [name, existsSync(at(name)) ? readFileSync(at(name), "utf8") : undefined]),
        )
      const put = (name: string, text: string | undefined) =>
        text === undefined ? rmSync(at(name), { force: true }) : writeFileSync(at(name), text)

      let files: FileChange[] = []
      let turn: ChangeCapability | undefined
      /** The content of each file before the turn changed it, and after the turn. */
      let first: State = {}
      let last: State = {}
      /** Files that the user changed between two changes of the turn. */
      let mixed = new Set<string>()
      let undone = false
      const begin = () => {
        files = []
        ;[first, last, mixed, undone] = [{}, {}, new Set(), false]
        turn = createTurnChanges({
          contents,
          worktree: project.path("tree"),
          leaveOut: data,
          limits: defaultScanLimits,
          save: async (record) => {
            files = record.files
          },
          note(record) {
            files = record.files
          },
        })
      }
      const noteChange = (name: string, text: string | undefined) => {
        const now = state()[name]
        if (name in last && last[name] !== now) mixed.add(name)
        if (!(name in first)) first[name] = now
        last[name] = text
      }
      const go = async (direction: "undo" | "redo") => {
        const before = state()
        const target = direction === "undo" ? first : last
        const own = direction === "undo" ? last : first
        // An unchanged file is not one of the changes of the turn.
        const changed = Object.keys(first).filter((name) => mixed.has(name) || first[name] !== last[name])
        const refusable = changed.filter(
          (name) => mixed.has(name) || (before[name] !== own[name] && before[name] !== target[name]),
        )
        const outcome = await putBack(files, { direction, contents, trackTemporary: untracked }).catch(
          (error: unknown) => error,
        )
        if (outcome instanceof UndoRefusedError) {
          expect(state()).toEqual(before)
          expect(outcome.refused.map(({ path }) => path).toSorted()).toEqual(refusable.map(at).toSorted())
          return
        }
        if (outcome instanceof Error) throw outcome
        expect(refusable).toEqual([])
        expect(state()).toEqual({
          ...before,
          ...Object.fromEntries(changed.map((name) => [name, target[name]])),
        })
        undone = direction === "undo"
        files = (outcome as Awaited<ReturnType<typeof putBack>>).changes
      }

      begin()
      for (const step of actions) {
        if (step.kind === "user") put(step.name, step.bytes)
        else if (step.kind === "new turn") begin()
        else if (step.kind === "undo" || step.kind === "redo") {
          if (undone === (step.kind === "redo")) await go(step.kind)
        } else if ("name" in step) {
          if (undone) begin()
          const now = state()[step.name]
          if (now === step.bytes) continue
          noteChange(step.name, step.bytes)
          const work = async () => put(step.name, step.bytes)
          const path = at(step.name)
          const content = (text: string | undefined) => [
            { path, bytes: text === undefined ? undefined : Buffer.from(text) },
          ]
          if (step.kind === "tool")
            await turn?.files({ before: content(now), after: content(step.bytes) }, work)
          else await turn?.command("make", new AbortController().signal, work)
        }
      }
      await project.remove()
    }),
    { numRuns: runs(150) },
  )
}, 60_000)
