import type { CommandCall } from "./command.ts"

/**
 * A piece of what a command says, with its arguments put in. `quoted` is what somebody else wrote: it names no files.
 */
export type TemplatePiece =
  | { kind: "text" | "quoted"; text: string }
  | { kind: "shell"; command: string }
  | { kind: "skill"; name: string }

/** What the command says to the model. */
export function commandPieces({ origin, name, template, arguments: given }: CommandCall): TemplatePiece[] {
  if (origin === undefined) return fillTemplate(template, given)
  const said: TemplatePiece =
    origin === "skill" ? { kind: "skill", name } : { kind: "quoted", text: template }
  return given === "" ? [said] : [said, { kind: "text", text: `\n\n${given}` }]
}

/**
 * The template with what the person wrote in place of `$ARGUMENTS` and `$1`, `$2` …; of these the highest takes all that
 * is left. Where the template has none of them, the arguments follow it. What the arguments hold is text: they bring no
 * `` !`…` `` of their own.
 */
export function fillTemplate(template: string, given: string): TemplatePiece[] {
  const words = splitWords(given)
  const places = [...template.matchAll(placeholder)].map(([, number]) => Number(number ?? 0))
  const last = Math.max(0, ...places)
  const fill = (text: string) =>
    text.replace(placeholder, (_, number: string | undefined) => {
      if (number === undefined) return given
      const index = Number(number) - 1
      return index + 1 === last ? words.slice(index).join(" ") : (words[index] ?? "")
    })
  const pieces: TemplatePiece[] = []
  let end = 0
  for (const match of template.matchAll(shellLine)) {
    pieces.push({ kind: "text", text: fill(template.slice(end, match.index)) })
    pieces.push({ kind: "shell", command: fill(match[1] ?? "") })
    end = match.index + match[0].length
  }
  pieces.push({ kind: "text", text: fill(template.slice(end)) })
  if (places.length === 0 && given !== "") pieces.push({ kind: "text", text: `\n\n${given}` })
  return pieces
}

const placeholder = /\$(?:ARGUMENTS\b|([1-9]\d?)(?!\d))/g

/** At the beginning, or after what is no word: a `!` in the middle of one means nothing. */
const shellLine = /(?<![\w`])!`([^`\n]+)`/g

/** Words as a shell separates them: by white space, but for what stands in quotes. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  )
}
