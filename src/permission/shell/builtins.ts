import { findProgram } from "./program-table.ts"
import type { Word } from "./words.ts"

/**
 * Returns why a builtin cannot be judged by its arguments: it evaluates its arguments as code, or it changes how later
 * commands are found, named or expanded. Returns undefined for other builtins.
 */
export function builtinReason(name: string, words: readonly Word[]): string | undefined {
  if (reserved.has(name)) return `${name} is a shell keyword`
  const builtin = findProgram(name)?.builtin
  if (builtin === "evaluates") return `${name} runs text that is built at run time`
  if (builtin === "changes") return `${name} changes the meaning of later commands`
  if (builtin === "named") return undefined
  const isKnown = words.every((word) => (!word.dynamic || word.numeric) && !word.glob)
  return builtin && !(isKnown && builtin(words.map(({ text }) => text)))
    ? `${name} can have effects beyond its arguments`
    : undefined
}

/**
 * Returns the text that a builtin such as `eval` runs as a command, if its words contain the text. Deny rules also
 * apply to this text.
 */
export function evaluatedText(name: string, words: readonly Word[]): string | undefined {
  const texts = words.map((word) => word.text)
  if (name === "eval") return texts.join(" ")
  if (name === "trap") return texts.find((text) => !text.startsWith("-"))
  return undefined
}

/**
 * Returns true for shell keywords. A keyword in the position of a command means that the text was parsed incorrectly.
 */
export function isReservedWord(name: string): boolean {
  return reserved.has(name)
}

/** Returns true for builtins after which the shell may be in any directory. */
export function mayMove(name: string): boolean {
  return findProgram(name)?.builtin === "evaluates" || name === "pushd" || name === "popd"
}

/** Returns true for a variable that does not make any known program or shell run, load or redirect anything. */
export function isHarmlessVariable(name: string): boolean {
  return harmlessVariables.has(name)
}

/** Returns true for a lower-case loop variable that no shell or program uses. */
export function isHarmlessLoopVariable(name: string): boolean {
  return (
    /^[a-z][a-z0-9_]*$/.test(name) &&
    !name.endsWith("_proxy") &&
    !name.startsWith("npm_") &&
    !specialLowerCase.has(name)
  )
}

const reserved = new Set([
  "if",
  "then",
  "else",
  "elif",
  "fi",
  "do",
  "done",
  "case",
  "esac",
  "while",
  "until",
  "for",
  "select",
  "function",
  "in",
  "{",
  "}",
  "!",

  "((",
  "foreach",
  "end",
  "always",
])

const harmlessVariables = new Set([
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "LC_COLLATE",
  "LC_MESSAGES",
  "LC_NUMERIC",
  "LC_TIME",
  "TZ",
  "NO_COLOR",
  "FORCE_COLOR",
  "CLICOLOR",
  "CLICOLOR_FORCE",
  "COLUMNS",
  "LINES",
  "CI",
  "NODE_ENV",
  "RUST_BACKTRACE",
  "RUST_LOG",
  "PYTHONUNBUFFERED",
  "PYTHONDONTWRITEBYTECODE",
  "DEBIAN_FRONTEND",
])

/** Lower-case variables that zsh uses itself or ties to upper-case variables. */
const specialLowerCase = new Set([
  "path",
  "fpath",
  "cdpath",
  "manpath",
  "mailpath",
  "module_path",
  "fignore",
  "psvar",
  "watch",
  "prompt",
  "argv",
  "status",
  "pipestatus",
  "options",
  "commands",
  "functions",
  "aliases",
  "histchars",
  "home",
  "user",
  "term",
  "shell",
])
