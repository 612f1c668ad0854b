import { indentOf } from "../../src/tools/edit/text.ts"
import {
  type Bend,
  type BentEdit,
  bendKept,
  both,
  changeWord,
  type Draft,
  dedent,
  keptIn,
  model,
  onlyWordChanged,
  pickIndex,
  rewriteFile,
  rewriteModel,
  sharedIndent,
  tellsIndents,
  toTabs,
  unitOf,
} from "./draft.ts"
import { type ChangedLine, linesOf, type Random, type RealEdit } from "./edits.ts"

/** White space and line endings that differ from the file. */
const spaceBends: Record<string, Bend> = {
  "trailing spaces added": ({ edit, random }) =>
    rewriteModel(edit, (line) =>
      line.kind === "kept" && random.below(2) === 0 ? `${line.text}  ` : line.text,
    ),
  "trailing spaces lost": ({ edit }) => {
    // If old and new lines are equal, the expected text is ambiguous.
    const [others, added] = [edit.lines.filter((line) => line.kind !== "new"), linesOf(edit, "new")]
    const isClear = others.every(({ text }) => added.filter((line) => line === text).length <= 1)
    return isClear ? rewriteFile(edit, (text) => (/[a-z;,]$/.test(text) ? `${text}  ` : text)) : undefined
  },
  "spaces for tabs": (draft) => {
    const unit = unitOf(draft)
    return unit > 0 && /^ /m.test(draft.oldString)
      ? both(draft, { onFile: (text) => toTabs(text, unit) })
      : undefined
  },
  "tabs for spaces": (draft) => {
    const unit = unitOf(draft)
    return unit > 0 ? both(draft, { onModel: (text) => toTabs(text, unit) }) : undefined
  },
  "other unit of indentation": (draft) => {
    const unit = unitOf(draft)
    const other = unit === 2 ? 4 : 2
    const wide = (text: string) =>
      text.replace(/^ +/gm, (indent) => " ".repeat((indent.length / unit) * other))
    return unit > 0 ? both(draft, { onModel: wide }) : undefined
  },
  dedented: (draft) => {
    const shared = sharedIndent(draft)
    const levels = 1 + draft.random.below(Math.max(1, shared))
    return shared > 0 ? both(draft, { onModel: (text) => dedent(text, levels) }) : undefined
  },
  "dedented in oldString alone": (draft) => {
    const shared = sharedIndent(draft)
    return shared > 0 ? { oldString: dedent(draft.oldString, shared) } : undefined
  },
  "indented too deep": (draft) => {
    const more = " ".repeat(draft.random.pick([2, 4, 8]))
    return both(draft, { onModel: (text) => text.replace(/^(?=.)/gm, more) })
  },
  "indented too deep in oldString alone": (draft) => ({
    oldString: draft.oldString.replace(/^(?=.)/gm, "    "),
  }),
  "indentation lost": (draft) => {
    // If all old lines are on one level, the indentation of new lines is ambiguous.
    const lines = draft.oldString.split("\n").filter((line) => line.trim() !== "")
    // If the edit moves lines, their indentation is ambiguous too.
    const [old, fresh] = [linesOf(draft.edit, "old"), linesOf(draft.edit, "new")]
    const isMoved = fresh.some(
      (line) =>
        !old.includes(line) && old.some((other) => other.trim() !== "" && other.trim() === line.trim()),
    )
    const isTold = new Set(lines.map(indentOf)).size > 1 && !isMoved && tellsIndents(draft.edit)
    return isTold && /^ /m.test(draft.oldString)
      ? both(draft, { onModel: (text) => text.replace(/^[ \t]+/gm, "") })
      : undefined
  },
  "first line without indentation, trailing spaces": ({ edit, oldString, newString }) => {
    const bent = rewriteModel(edit, (line) => (line.kind === "kept" ? `${line.text} ` : line.text))
    if (!bent || !/^ +\S/.test(oldString) || indentOf(oldString) !== indentOf(newString)) return undefined
    return { oldString: bent.oldString.replace(/^ +/, ""), newString: bent.newString.replace(/^ +/, "") }
  },
  "LF for CRLF": (draft) => both(draft, { onFile: (text) => text.replaceAll("\n", "\r\n") }),
  "CRLF for LF": (draft) => both(draft, { onModel: (text) => text.replaceAll("\n", "\r\n") }),
  "blank edge lines": (draft) => {
    const [head, tail] = [
      draft.random.pick(["\n", "\n\n", "  \n", ""]),
      draft.random.pick(["\n\n", "\n \n", "\n\n\n"]),
    ]
    return both(draft, { onModel: (text) => head + text + tail })
  },
  "blank edge lines in oldString alone": ({ oldString }) => ({ oldString: `\n${oldString}\n\n` }),
  "white space within lines": ({ edit }) =>
    rewriteModel(edit, (line) =>
      line.kind === "kept" ? line.text.replace(/(\S) ([=:{]) ?/, "$1  $2 ") : line.text,
    ),
  "white space beside signs": ({ edit }) =>
    rewriteModel(edit, (line) =>
      line.kind === "kept" ? line.text.replace(/\((?=\w)/, "( ").replace(/(\w), (?=\w)/, "$1,") : line.text,
    ),
  "aligned in the file": ({ edit }) => keptIn(edit, (text) => text.replace(/(\w) (=|:) /, "$1    $2 ")),
  "no final line ending": ({ edit, oldString, newString }) => ({
    file: edit.before + oldString,
    expected: edit.before + newString,
    oldString: `${oldString}\n`,
    newString: `${newString}\n`,
  }),
}

/** Characters that differ from the file, and decorations around the text. */
const signBends: Record<string, Bend> = {
  "typographic quotes": (draft) => {
    const curl = (text: string) =>
      text
        .replace(/"([^"\n]*)"/g, "“$1”")
        .replace(/(\w)'(\w)/g, "$1’$2")
        .replace(/'([^'\n]*)'/g, "‘$1’")
    return both(draft, { onModel: curl })
  },
  "typographic dashes and dots": (draft) =>
    both(draft, { onModel: (text) => text.replaceAll(" - ", " – ").replaceAll("...", "…") }),
  "no-break spaces": (draft) => both(draft, { onModel: (text) => text.replace(/(?<=\w) (?=\w)/g, "\u00a0") }),
  "plain for typographic": ({ edit }) => {
    const curl = (text: string) =>
      text
        .replace(/"([^"\n]*)"/g, "“$1”")
        .replace(/'/g, "’")
        .replaceAll(" - ", " — ")
    return keptIn(edit, curl)
  },
  "escaped whole": (draft) => both(draft, { onModel: (text) => JSON.stringify(text).slice(1, -1) }),
  "escaped line ends": (draft) => both(draft, { onModel: (text) => text.replaceAll("\n", "\\n") }),
  "escaped quotes": (draft) => both(draft, { onModel: (text) => text.replace(/["']/g, "\\$&") }),
  "doubled backslashes": (draft) => both(draft, { onModel: (text) => text.replaceAll("\\", "\\\\") }),
  "escapes lost": (draft) =>
    both(draft, {
      onModel: (text) => text.replaceAll("\\n", "\n").replaceAll("\\t", "\t").replaceAll('\\"', '"'),
    }),
  "HTML entities": (draft) =>
    both(draft, {
      onModel: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
    }),
  "line numbers": (draft) => {
    const first = draft.edit.before.split("\n").length
    const separator = draft.random.pick(["→", "→", "\t", ": ", " | "])
    const number = (text: string) =>
      text
        .split("\n")
        .map((line, index) => String(first + index).padStart(5) + separator + line)
        .join("\n")
    return both(draft, { onModel: number })
  },
  "line numbers in oldString alone": ({ edit, oldString }) => {
    const first = edit.before.split("\n").length
    return {
      oldString: oldString
        .split("\n")
        .map((line, index) => `${String(first + index).padStart(5)}→${line}`)
        .join("\n"),
    }
  },
  "Markdown fence": (draft) => {
    const tag = draft.random.pick(["", "ts", "python"])
    return both(draft, { onModel: (text) => `\`\`\`${tag}\n${text}\n\`\`\`` })
  },
}

/** Words that differ from the file, and missing lines. */
const contentBends: Record<string, Bend> = {
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
  // The indentation must determine the position of the line.
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
    at === start ? indentOf(line.text) + mark : at === start + 1 ? undefined : line.text
  return { oldString: model(edit, text, "old"), newString: model(edit, text, "new") }
}

/** Files in which the edit must be refused. */
const refusals: Record<string, Bend> = {
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
    // A longer last word would still begin with the text.
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
    // Chooses a line with one changed word for which the file has a third word.
    const pairs = edit.lines.flatMap((line, at) => {
      const next = edit.lines[at + 1]
      const word =
        line.kind === "old" && next?.kind === "new" ? onlyWordChanged(line.text, next.text) : undefined
      // If the word occurs twice in the line, the edit could refer to either.
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
    // The tool would find equal lines elsewhere with other indentation.
    return bare(file).includes(bare(oldString)) ? undefined : { file, expected: undefined }
  },
}

const single: Record<string, Bend> = { exact: () => ({}), ...spaceBends, ...signBends, ...contentBends }

/** All bends, alone and in pairs, and the edits that must be refused. They imitate how models bend edits. */
const bends: Record<string, Bend> = {
  ...single,
  "tabs and typographic": (draft) => chain(draft, "spaces for tabs", "typographic quotes"),
  "CRLF and dedented": (draft) => chain(draft, "dedented", "LF for CRLF"),
  "dedented and blank edges": (draft) => chain(draft, "dedented", "blank edge lines"),
  "fence and too deep": (draft) => chain(draft, "indented too deep", "Markdown fence"),
  "entities and tabs": (draft) => chain(draft, "spaces for tabs", "HTML entities"),
  "numbers and a changed word": (draft) => chain(draft, "a word of a kept line changed", "line numbers"),
  ...refusals,
}

function chain(draft: Draft, first: string, second: string) {
  const one = single[first]?.(draft)
  if (!one || ("expected" in one && one.expected === undefined)) return undefined
  const bent = { ...draft, ...one, expected: one.expected ?? draft.expected }
  const two = single[second]?.(bent)
  return two && { ...bent, ...two }
}

/** Names of all bends. */
export const bendKinds: readonly string[] = Object.keys(bends)

/**
 * Bends a real edit. Returns undefined if the edit cannot be bent in this way, or if its text is not unique in the
 * file.
 */
export function bendEdit(edit: RealEdit, kind: string, random: Random): BentEdit | undefined {
  const oldString = linesOf(edit, "old").join("\n")
  const newString = linesOf(edit, "new").join("\n")
  const end = edit.after === "" ? "" : "\n"
  const file = edit.before + oldString + end + edit.after
  const expected = edit.before + newString + end + edit.after
  if (oldString.trim() === "" || file.split(oldString).length !== 2) return undefined
  const draft = { edit, random, file, expected, oldString, newString }
  const bent = bends[kind]?.(draft)
  if (!bent) return undefined
  const whole = { kind, path: edit.path, file, expected, oldString, newString, ...bent }
  if (whole.oldString === whole.newString || whole.oldString.trim() === "") return undefined
  if (kind !== "exact" && !kind.includes("refuse") && isExact(whole, kind)) return undefined
  return whole
}

/**
 * Returns whether the file contains the bent text exactly. With other line endings, new lines still need the file's
 * line endings.
 */
function isExact({ file, oldString }: BentEdit, kind: string): boolean {
  if (kind === "LF for CRLF" || kind === "CRLF for LF") return false
  // Without one of its lines, the text may occur elsewhere in the file.
  const plain = kind === "a kept line left out" ? /\s+/g : /\r/g
  return file.replace(plain, "").includes(oldString.replace(plain, ""))
}
