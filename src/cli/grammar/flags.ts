import { type Command, InvalidArgumentError, Option } from "commander"

/** The flags of a command for which the project's config and tools count. */
export function place(command: Command): Command {
  return placeAsItIs(command).option("--trust", "let the project's own config and tools count, this once")
}

/**
 * The same for a command in which they have no part, such as one on what is stored, and for one that shows what is trusted,
 * which trust for this once would hide.
 */
export function placeAsItIs(command: Command): Command {
  return directory(command).option("--verbose", "log to stderr too")
}

/** The flag of a command that only has to know where it is. */
export function directory(command: Command): Command {
  return command.option("--dir <path>", "work in this directory (default: here)")
}

/** `--format text|json`. */
export function format(): Option {
  return new Option("--format <kind>", "how to print").choices(["text", "json"]).default("text")
}

/** For a flag that may be repeated. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** For a flag that is a list of names, with commas between them. */
export function names(value: string): string[] {
  const list = value.split(",").map((name) => name.trim())
  if (list.includes("")) throw new InvalidArgumentError("It must be names with commas between them.")
  return list
}

/** For a flag that is a count. */
export function positive(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError("It must be a whole number from 1.")
  return number
}

/** For a flag that is an amount of money. */
export function amount(value: string): number {
  const number = Number(value)
  if (value.trim() === "" || !Number.isFinite(number) || number <= 0)
    throw new InvalidArgumentError("It must be a number above 0.")
  return number
}

/** For a flag that is a time such as `30d`: in milliseconds. */
export function duration(value: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([hdw])$/.exec(value) ?? []
  const hours = { h: 1, d: 24, w: 7 * 24 }[unit]
  if (count === undefined || hours === undefined)
    throw new InvalidArgumentError("It must be a number of hours, days or weeks, such as 12h, 30d or 6w.")
  return Number(count) * hours * 3_600_000
}

/** For a flag that is a port. */
export function port(value: string): number {
  const number = Number(value)
  if (value.trim() === "" || !Number.isInteger(number) || number < 0 || number > 65_535)
    throw new InvalidArgumentError("It must be a whole number from 0 to 65535.")
  return number
}
