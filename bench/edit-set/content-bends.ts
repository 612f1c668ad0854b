import type { Bend, Draft } from "./bend.ts"
import { bendKept, indent, model, pickIndex } from "./bend-lines.ts"
import type { ChangedLine } from "./real-edit.ts"
import { tellsIndents } from "./told-indents.ts"
import { changeWord } from "./words.ts"

/** Words that are not the file's, and lines that are missing. */
export const contentBends: Record<string, Bend> = {
  "a word of a kept line changed": (draft) => bendKept(draft, changeWord),
  "a word of a kept line changed in oldString alone": (draft) => {
    const bent = bendKept(draft, changeWord)
    return bent && { oldString: bent.oldString }
  },
  "the case of a word": (draft) =>
    bendKept(draft, (text) => {
      const word = /[a-z]\w{3,}/.exec(text)?.[0]
      return word && text.replace(word, word.charAt(0).toUpperCase() + word.slice(1))
    }),
  "a word of a changed line changed in oldString": ({ edit, random }) => {
    const index = pickIndex(
      edit,
      random,
      (line) => line.kind === "old" && changeWord(line.text) !== undefined,
    )
    return index === undefined
      ? undefined
      : { oldString: model(edit, (line, at) => (at === index ? changeWord(line.text) : line.text), "old") }
  },
  // Beside lines whose indentation says nothing, it could have stood anywhere.
  "a kept line left out": (draft) =>
    tellsIndents(draft.edit) ? bendKept(draft, () => undefined, true) : undefined,
  "the rest elided": elide,
}

function elide({ edit, random }: Draft) {
  const start = edit.lines.findIndex(
    (line, index) =>
      index > 0 &&
      [line, edit.lines[index + 1]].every((it) => it?.kind === "kept" && it.text.trim() !== "") &&
      index + 2 < edit.lines.length &&
      edit.lines[index - 1]?.text.trim() !== "",
  )
  if (start === -1) return undefined
  const mark = random.pick(["...", "// ... existing code ...", "# ... rest unchanged"])
  const text = (line: ChangedLine, at: number) =>
    at === start ? indent(line.text) + mark : at === start + 1 ? undefined : line.text
  return { oldString: model(edit, text, "old"), newString: model(edit, text, "new") }
}
