import { realpathSync } from "node:fs"
import { basename, delimiter, join, relative } from "node:path"
import { shellWord } from "../../util/words.ts"

/**
 * Rewrites commands in a message, such as `tackle trust` after a backtick, so that the user can copy them. If this
 * program is not the `tackle` on the PATH, replaces `tackle` with `npx tackle` or the path of this program. Repeats the
 * `--dir` flag of this command.
 */
export function asTyped(text: string): string {
  return text.replaceAll(
    commands,
    (_, words = "") => `${commandName()}${words === "" ? "" : ` ${words}`}${directoryFlag(words)}`,
  )
}

/**
 * Matches commands in a message: at its start, after a backtick or another mark that precedes a command, or alone in
 * parentheses. The interactive terminal has no command name, so its flags `-s`, `-c` and `--attach` identify it.
 */
const commands =
  /(?<=^|[`"(]|: )tackle(?: ((?:agent|attach|auth|config|db|doctor|gateway|mcp|models|permission|queue|run|send|serve|session|stats|tool|trust|web|worker)\b(?: [a-z]+\b(?![/:.]))*)|(?= (?:-s|-c|--attach)\b))/gm

function directoryFlag(words: string): string {
  const directory = typedDirectory(process.argv)
  if (directory === undefined || /^gateway\b|^config schema\b/.test(words)) return ""
  return ` --dir ${shellWord(directory)}`
}

/** Returns the value of `--dir` as the user typed it, or undefined for the current directory. */
function typedDirectory(argv: readonly string[]): string | undefined {
  const flags = argv.includes("--") ? argv.slice(0, argv.indexOf("--")) : argv
  const index = flags.findLastIndex((word) => /^--dir(=|$)/.test(word))
  const given = flags[index] === "--dir" ? flags[index + 1] : flags[index]?.slice("--dir=".length)
  return given === undefined || realPath(given) === realPath(".") ? undefined : given
}

/** Returns the name under which the user can run this program again from the current directory. */
function commandName(): string {
  const { env, argv } = process
  const [, script = ""] = argv
  if (basename(script) !== "tackle") return "tackle"
  if (env.npm_command === "exec") return "npx tackle"
  const own = realPath(script)
  const first = (env.PATH ?? "")
    .split(delimiter)
    .map((directory) => realPath(join(directory || ".", "tackle")))
    .find((path) => path !== undefined)
  if (own === undefined || first === own) return "tackle"
  const near = relative(process.cwd(), script)
  return shellWord(near.includes("/") && near.length < script.length ? near : script)
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
