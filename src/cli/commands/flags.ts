import { type Command, InvalidArgumentError, Option } from "commander"

/** Adds `--dir`, `--verbose` and `--trust`, for a command that loads the project's config and tools. */
export function projectFlags(command: Command): Command {
  return locationFlags(command).option("--trust", "trust the project's config and tools for this run")
}

/** Adds `--dir` and `--verbose`. */
export function locationFlags(command: Command): Command {
  return directoryFlag(command).option("--verbose", "write the log to stderr in addition to the log file")
}

/** Adds `--dir`. */
export function directoryFlag(command: Command): Command {
  return command.option("--dir <path>", "work in this directory (default: current directory)")
}

/** Returns the flag `--format text|json`. */
export function formatFlag(): Option {
  return new Option("--format <kind>", "output format").choices(["text", "json"]).default("text")
}

/** Returns the flag `--json`, which is short for `--format json`. */
export function jsonFlag(): Option {
  return new Option("--json", "same as --format json").implies({ format: "json" })
}

/** Returns the flag `--database`. */
export function databaseFlag(): Option {
  return new Option("--database <url>", "PostgreSQL database for sessions (default: $TACKLE_DATABASE)")
}

/** Returns the flag `--token-file` for commands that connect to a server. */
export function tokenFileFlag(): Option {
  return new Option(
    "--token-file <path>",
    "file with the server's token (default: the token in $TACKLE_SERVER_TOKEN, or server-token in the data directory)",
  )
}

/** Adds the flags for a command that runs a session in the foreground. */
export function foregroundFlags(command: Command): Command {
  return command
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .option("-q, --quiet", "print one line per call, without output, diffs or progress")
    .option(
      "--auto",
      "allow each request once, but reject loops, protected files and commands that ask to leave the sandbox",
    )
    .option("--allow <rule>", "allow permission[:pattern], such as 'bash:git *' (repeatable)", collect)
    .option("--deny <rule>", "deny permission[:pattern] (repeatable)", collect)
    .option("--sandboxed", "run commands in the sandbox without asking")
    .option("--timeout <seconds>", "stop after this time", positive)
}

/** Appends a value of a repeatable flag to the earlier values. */
export function collect(value: string, before: string[] = []): string[] {
  return [...before, value]
}

/** Parses a comma-separated list of names. */
export function names(value: string): string[] {
  const list = value.split(",").map((name) => name.trim())
  if (list.includes("")) throw new InvalidArgumentError("The value must be a comma-separated list of names.")
  return list
}

/** Parses a whole number of at least 1. */
export function positive(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError("The value must be a whole number of at least 1.")
  return number
}

/** Parses an amount of money above 0. */
export function amount(value: string): number {
  const number = Number(value)
  if (value.trim() === "" || !Number.isFinite(number) || number <= 0)
    throw new InvalidArgumentError("The value must be a number above 0.")
  return number
}

/** Parses a duration such as `30d` and returns milliseconds. */
export function duration(value: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([hdw])$/.exec(value) ?? []
  const hours = { h: 1, d: 24, w: 7 * 24 }[unit]
  if (count === undefined || hours === undefined)
    throw new InvalidArgumentError(
      "The value must be a number of hours, days or weeks, such as 12h, 30d or 6w.",
    )
  return Number(count) * hours * 3_600_000
}

/** Parses a port number from 0 to 65535. */
export function port(value: string): number {
  const number = Number(value)
  if (value.trim() === "" || !Number.isInteger(number) || number < 0 || number > 65_535)
    throw new InvalidArgumentError("The value must be a whole number from 0 to 65535.")
  return number
}
