import type { Bend } from "./bend.ts"
import { bendKept } from "./bend-lines.ts"
import { changeWord, onlyWordChanged } from "./words.ts"

/** States of the file in which an edit must be refused. */
export const refusals: Record<string, Bend> = {
  "refuse: twice, indented otherwise": ({ edit, oldString }) => {
    const deeper = (by: string) => oldString.replace(/^(?=.)/gm, by)
    const file = `${edit.before}${deeper("  ")}\n${deeper("    ")}\n${edit.after}`
    return file.includes(oldString) ? undefined : { file, expected: undefined }
  },
  "refuse: twice, with spaces at line ends": ({ edit, oldString }) => {
    const spaced = oldString.replace(/$/gm, " ")
    const file = `${edit.before}${spaced}\n${spaced}\n${edit.after}`
    return { file, expected: undefined, oldString: `${oldString}\t` }
  },
  "refuse: two that resemble it": (draft) => {
    const [one, two] = [
      bendKept(draft, (text) => changeWord(text)),
      bendKept(draft, (text) => changeWord(text, "other")),
    ]
    if (!one || !two || one.oldString === two.oldString) return undefined
    const file = `${draft.edit.before}${one.oldString}\n${two.oldString}\n${draft.edit.after}`
    // A last word that goes on still begins with the text.
    return file.includes(draft.oldString) ? undefined : { file, expected: undefined }
  },
  "refuse: not there": ({ edit, oldString }) => {
    const file = edit.before + edit.after
    const telling = oldString
      .split("\n")
      .some((line) => line.trim().length > 8 && !file.includes(line.trim()))
    return telling && file.length > 0 ? { file, expected: undefined } : undefined
  },
  "refuse: done before": ({ expected, oldString }) =>
    expected.replace(/\s+/g, "").includes(oldString.replace(/\s+/g, ""))
      ? undefined
      : { file: expected, expected: undefined },
  "refuse: the changed word is another in the file": ({ edit, random, oldString }) => {
    // A line of which one word is changed, where the file by now has a third word in that very place.
    const pairs = edit.lines.flatMap((line, at) => {
      const next = edit.lines[at + 1]
      const word =
        line.kind === "old" && next?.kind === "new" ? onlyWordChanged(line.text, next.text) : undefined
      // Where it stands twice in the line, it may be the other one that is put in place of it.
      return word && line.text.split(word).length === 2 ? [{ at, word }] : []
    })
    if (pairs.length === 0) return undefined
    const { at, word } = random.pick(pairs)
    const lines = edit.lines.filter((line) => line.kind !== "new")
    const index = edit.lines.slice(0, at).filter((line) => line.kind !== "new").length
    const others = lines.map((line, place) =>
      place === index ? line.text.replace(word, `${word}Third`) : line.text,
    )
    const file = `${edit.before}${others.join("\n")}\n${edit.after}`
    const bare = (text: string) => text.replace(/\s+/g, "")
    // Where the same lines stand elsewhere too, only indented otherwise, they are found there.
    return bare(file).includes(bare(oldString)) ? undefined : { file, expected: undefined }
  },
}
