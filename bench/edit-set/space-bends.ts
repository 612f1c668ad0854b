import type { Bend } from "./bend.ts"
import {
  both,
  dedent,
  indent,
  keptIn,
  rewriteFile,
  rewriteModel,
  sharedIndent,
  toTabs,
  unitOf,
} from "./bend-lines.ts"
import { linesOf } from "./real-edit.ts"
import { tellsIndents } from "./told-indents.ts"

/** White space and line endings that are not the file's. */
export const spaceBends: Record<string, Bend> = {
  "trailing spaces added": ({ edit, random }) =>
    rewriteModel(edit, (line) =>
      line.kind === "kept" && random.below(2) === 0 ? `${line.text}  ` : line.text,
    ),
  "trailing spaces lost": ({ edit }) => {
    // Of two lines that are the same, one old and one new, nobody knows which is which.
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
    // Where all old lines stand on one level, this is no other than a shift: deeper new lines are lost for good.
    const lines = draft.oldString.split("\n").filter((line) => line.trim() !== "")
    // Nor is it told where the edit moves lines that stay the same otherwise.
    const [old, fresh] = [linesOf(draft.edit, "old"), linesOf(draft.edit, "new")]
    const isMoved = fresh.some(
      (line) =>
        !old.includes(line) && old.some((other) => other.trim() !== "" && other.trim() === line.trim()),
    )
    const isTold = new Set(lines.map(indent)).size > 1 && !isMoved && tellsIndents(draft.edit)
    return isTold && /^ /m.test(draft.oldString)
      ? both(draft, { onModel: (text) => text.replace(/^[ \t]+/gm, "") })
      : undefined
  },
  "first line without indentation, trailing spaces": ({ edit, oldString, newString }) => {
    const bent = rewriteModel(edit, (line) => (line.kind === "kept" ? `${line.text} ` : line.text))
    if (!bent || !/^ +\S/.test(oldString) || indent(oldString) !== indent(newString)) return undefined
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
