import { commonSequence } from "./common-sequence.ts"
import { leastStep } from "./indent-unit.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** Whose indentation the new text is written in: the old text's, or already the file's. */
export type IndentFrame = "old" | "file"

/**
 * Tells it from the lines that the new text keeps of the old one, else from how far each text is indented as a whole.
 * Undefined where these do not agree. `file` and `old` are the same lines, one to one.
 */
export function indentFrame(edit: {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}): IndentFrame | undefined {
  const { file, old, fresh } = edit
  const own = (index: number) => indentOf(file[index]?.text ?? "")
  const isShifted = old.some((line, index) => line.text.trim() !== "" && indentOf(line.text) !== own(index))
  if (!isShifted) return "old"
  const [inOld, inFile, inFresh] = [least(old), least(file), least(fresh)]
  const votes = new Set(
    keptIndents(old, fresh).map(({ old: at, from, to }) => vote({ from, to, file: own(at) })),
  )
  votes.delete(undefined)
  const isMoved = votes.delete("moved")
  const [only, ...more] = votes
  if (inFresh === undefined) return "old"
  if (inFresh === inOld && mayBeCutOff({ old, fresh, inFile: inFile ?? "" })) return undefined
  const first = firstVote({ file, old, fresh })
  if (first !== undefined) return first
  // Where one line is moved, another that happens to stand where the file has it may be too.
  if (isMoved && votes.has("file")) return undefined
  if (more.length === 0 && only === "old") return only
  // A line put around others may move these to where the file happens to have them, but not all of the text to the left.
  if (only === "file" && isStillStepped(edit)) return undefined
  if (more.length === 0 && only === "file" && inFresh.length >= (inFile ?? "").length) return only
  if (inOld === inFile) return more.length > 0 || only === "file" ? undefined : "old"
  if (inFresh === inOld) return "old"
  return inFresh === inFile && more.length === 0 ? "file" : undefined
}

/** True if the new text goes deeper by as much as the old one and the file does not: then it is hardly the file's frame. */
function isStillStepped({ file, old, fresh }: Record<"file" | "old" | "fresh", readonly Line[]>): boolean {
  const step = leastStep(fresh)
  return step !== undefined && step === leastStep(old) && step !== leastStep(file)
}

/**
 * True if the one old line may be quoted from after its indentation on, so that the new lines after the first have the
 * file's already, as well as be shifted with them. Lines between these two depths fit neither.
 */
function mayBeCutOff(edit: { old: readonly Line[]; fresh: readonly Line[]; inFile: string }): boolean {
  const [old, [first, ...rest]] = [withText(edit.old), withText(edit.fresh)]
  const deep = ({ text }: Line) => indentOf(text) === "" || indentOf(text).length >= edit.inFile.length
  return old.length === 1 && rest.length > 0 && first?.text.trimStart() === first?.text && rest.every(deep)
}

function withText(lines: readonly Line[]): Line[] {
  return lines.filter((line) => line.text.trim() !== "")
}

function keptIndents(old: readonly Line[], fresh: readonly Line[]) {
  const text = (line: Line | undefined) => line?.text.trim()
  const same = (a: number, b: number) => text(old[a]) === text(fresh[b]) && text(old[a]) !== ""
  return commonSequence({ old: old.length, fresh: fresh.length, same }).map((pair) => ({
    old: pair.old,
    from: indentOf(old[pair.old]?.text ?? ""),
    to: indentOf(fresh[pair.fresh]?.text ?? ""),
  }))
}

/** What a line that is kept says; "moved" where it is in neither frame. */
function vote(indents: { from: string; to: string; file: string }): IndentFrame | "moved" | undefined {
  if (indents.from === indents.file) return undefined
  if (indents.to === indents.from) return "old"
  return indents.to === indents.file ? "file" : "moved"
}

/** What a first line says that both texts begin with: nothing was put around it. */
function firstVote(edit: { file: readonly Line[]; old: readonly Line[]; fresh: readonly Line[] }) {
  const [file, old, fresh] = [edit.file, edit.old, edit.fresh].map((lines) => withText(lines)[0]?.text)
  if (file === undefined || old === undefined || old.trim() !== fresh?.trim()) return undefined
  const said = vote({ from: indentOf(old), to: indentOf(fresh), file: indentOf(file) })
  return said === "moved" ? undefined : said
}

/** The shortest indentation of a line with text; undefined where there is none. */
function least(lines: readonly Line[]): string | undefined {
  return withText(lines)
    .map((line) => indentOf(line.text))
    .reduce<string | undefined>(
      (best, indent) => (best !== undefined && best.length <= indent.length ? best : indent),
      undefined,
    )
}
