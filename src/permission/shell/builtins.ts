import { findProgram } from "./program-table.ts"
import type { Word } from "./words.ts"

/**
 * Why a command of the shell itself cannot be judged by its words: it changes how later commands are found, named or
 * expanded, or evaluates its arguments. Undefined for all others.
 */
export function builtinReason(name: string, words: readonly Word[]): string | undefined {
  if (reserved.has(name)) return `${name} is a word of the shell's grammar`
  const builtin = findProgram(name)?.builtin
  if (builtin === "evaluates") return `${name} runs text that is made when it runs`
  if (builtin === "changes") return `${name} changes what later commands mean`
  return builtin && !words.every((word) => !word.dynamic && !word.glob && builtin(word.text))
    ? `${name} can change or run more than its name says`
    : undefined
}

/** The text that a builtin runs as a command, where the words give it: a deny then holds on it too. */
export function evaluatedText(name: string, words: readonly Word[]): string | undefined {
  const texts = words.map((word) => word.text)
  if (name === "eval") return texts.join(" ")
  if (name === "trap") return texts.find((text) => !text.startsWith("-"))
  return undefined
}

/** True for words of the shell's grammar: where one stands as a command, the grammar was misread. */
export function isReservedWord(name: string): boolean {
  return reserved.has(name)
}

/** True for builtins after which the shell may stand anywhere. */
export function mayMove(name: string): boolean {
  return findProgram(name)?.builtin === "evaluates" || name === "pushd" || name === "popd"
}

/** True for a variable that no program or shell is known to obey in a way that runs, loads or redirects anything. */
export function isHarmlessVariable(name: string): boolean {
  return harmlessVariables.has(name)
}

/** True for a loop's variable: lower case, and none that a shell or a program obeys. */
export function isHarmlessLoopVariable(name: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(name) && !name.endsWith("_proxy") && !specialLowerCase.has(name)
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
  "[[",
  "]]",
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

/** Variables of zsh that stand for upper-case ones, and its own. */
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
