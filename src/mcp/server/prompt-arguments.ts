import { type PromptArgument, ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server"
import type { Command } from "../../session/command.ts"

/**
 * What a command takes, as a prompt has it: a name for each `<word>` and `[word]` of its hint, the first kind required;
 * without such a hint a name for each of `$1`, `$2` … in the template, or one for all that follows the command's name.
 */
export function argumentsOf({ template, argument_hint: hint = "", origin }: Command): PromptArgument[] {
  const hinted = [...hint.matchAll(/<([^<>]+)>|\[([^[\]]+)\]/g)].map(([, needed, optional = ""]) => ({
    name: needed ?? optional,
    required: needed !== undefined,
  }))
  if (hinted.length > 0) return hinted
  const places = [...template.matchAll(/\$([1-9]\d?)(?!\d)/g)].map(([, number]) => Number(number))
  const count = origin === undefined ? Math.max(0, ...places) : 0
  if (count > 0) return Array.from({ length: count }, (_, index) => ({ name: `argument${index + 1}` }))
  return [{ name: "arguments", description: hint || "What follows the name of the command." }]
}

/**
 * The given values in a line, as a person would write them behind the command. Throws `ProtocolError` for one that is
 * missing or unknown, and for one that cannot be quoted.
 */
export function lineOf(known: readonly PromptArgument[], given: Readonly<Record<string, string>>): string {
  const names = known.map(({ name }) => name)
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw invalid(`There is no argument "${unknown}". There are: ${names.join(", ")}.`)
  const missing = known.find(({ name, required }) => required && given[name] === undefined)
  if (missing) throw invalid(`The argument "${missing.name}" is missing.`)
  const last = known.findLastIndex(({ name }) => given[name] !== undefined)
  const values = known.slice(0, last + 1).map(({ name }) => given[name] ?? "")
  // The last place takes all that is left: quotes would stand in the text.
  return values.map((value, index) => (index === known.length - 1 ? value : quoted(value))).join(" ")
}

function quoted(value: string): string {
  if (value !== "" && !/[\s"']/.test(value)) return value
  if (!value.includes('"')) return `"${value}"`
  if (!value.includes("'")) return `'${value}'`
  throw invalid(`An argument may hold one kind of quotes, not both: ${value}`)
}

function invalid(why: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, why)
}
