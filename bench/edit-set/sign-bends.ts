import type { Bend } from "./bend.ts"
import { both, keptIn } from "./bend-lines.ts"

/** Other signs than the file's, and such as stand around its text. */
export const signBends: Record<string, Bend> = {
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
