import { basename } from "node:path"
import type { ShellNode } from "./parse.ts"
import { possibleCommands, tails } from "./possible-commands.ts"
import { findProgram } from "./program-table.ts"
import { readRedirection } from "./redirections.ts"
import { innerInputUse, inputUse } from "./risks.ts"
import {
  type Directories,
  type Exit,
  enter,
  exitAt,
  type PlannedCommand,
  redirectTypes,
  type Walk,
  wordTypes,
} from "./shell-plan.ts"
import { joinWords, literalWord, type Word, wordOf } from "./words.ts"
import { type Inner, innerCommands, isTransparent } from "./wrapped-commands.ts"

/**
 * Adds a command and its redirections to the plan. `extra` contains words that the grammar attached to another node.
 */
export function readSimpleCommand(
  walk: Walk,
  node: ShellNode | undefined,
  extra: readonly ShellNode[],
  at: Directories,
): Exit {
  const parts: ShellNode[] = []
  const since = walk.position()
  let assigns = false
  const assignments: string[] = []
  let reason: string | undefined
  for (const child of node?.children ?? []) {
    if (child.type === "variable_assignment") {
      assigns = true
      if (isHarmlessAssignment(walk, child)) walk.substitutionsIn(child, at)
      else {
        assignments.push(walk.source(child))
        reason ??= valueProblem(walk, child, at)
      }
    } else if (redirectTypes.has(child.type)) {
      parts.push(...readRedirection(walk, child, at))
    } else if (child.type === "command_name" || wordTypes.has(child.type)) parts.push(child)
    else {
      reason ??= `${walk.source(child).slice(0, 40)} cannot be parsed`
      walk.found.garbled = true
      if (child.type === "subshell") walk.visit(child, at)
      else walk.substitutionsIn(child, at)
    }
  }
  parts.push(...extra)
  parts.sort((a, b) => a.start - b.start)
  if (!areSeparate(walk, parts)) {
    reason ??= "its word boundaries are unclear"
    walk.found.garbled = true
  }
  const source = node ? walk.source(node) : walk.between(parts[0]?.start ?? 0, parts.at(-1)?.end ?? 0)
  const argv = parts.map((part) => walk.readWord(part, at))
  const exit = addCommand(walk, { argv, source, at, assigns, assignments, reason })
  if (argv[0]?.text === "exec" && walk.found.inputs.length > 0) walk.found.redirectsInput = true
  walk.feed(since)
  return exit
}

/** Returns why an assignment without a command may change the effect of later commands. */
export function assignmentProblem(walk: Walk, node: ShellNode, at: Directories): string | undefined {
  const name = walk.source(node.children[0] ?? node)
  if (!isHarmlessAssignment(walk, node) && !isHarmlessLoopVariable(name)) {
    walk.substitutionsIn(node, at)
    return `it sets ${name}`
  }
  return valueProblem(walk, node, at)
}

function isHarmlessAssignment(walk: Walk, { children: [name, , value] }: ShellNode): boolean {
  return (
    name !== undefined &&
    isHarmlessVariable(walk.source(name)) &&
    (value === undefined || /^[\w.,:@+-]*$/.test(walk.source(value)))
  )
}

/** Analyzes the commands in the value of an assignment. Returns why the value could not be parsed. */
function valueProblem(walk: Walk, node: ShellNode, at: Directories): string | undefined {
  const [name, operator, value, ...more] = node.children
  const plain = name?.type === "variable_name" && operator?.type === "=" && more.length === 0
  if (plain && (!value || wordTypes.has(value.type))) return value && walk.readWord(value, at).problem
  walk.substitutionsIn(node, at)
  return `it sets ${name ? walk.source(name) : "a variable"}`
}

/**
 * Adds a command such as `export`, `declare` or `unset` to the plan. Deny rules match its words. An allow rule must be
 * `*`, or for `export` name each operand.
 */
export function readShellCommand(walk: Walk, node: ShellNode, at: Directories): Exit {
  const argv = node.children.map((child) => {
    if (child.type === "variable_assignment") {
      const word = assignmentWord(walk, child, at)
      if (word) return word
    } else if (child.named) return walk.readWord(child, at)
    walk.substitutionsIn(child, at)
    return wordOf(
      { type: "word", named: true, start: 0, end: child.end - child.start, children: [] },
      walk.source(child),
    )
  })
  return addCommand(walk, {
    argv,
    source: walk.source(node),
    at,
    assigns: false,
    reason: undefined,
  })
}

/** Returns `NAME=value` as one word, or undefined for other assignments. */
function assignmentWord(walk: Walk, { children }: ShellNode, at: Directories): Word | undefined {
  const [name, operator, value, ...more] = children
  if (name?.type !== "variable_name" || operator?.type !== "=" || more.length > 0) return undefined
  if (value && !wordTypes.has(value.type)) return undefined
  const { base: _, tail: __, ...word } = value ? walk.readWord(value, at) : literalWord("")
  const start = `${walk.source(name)}=`
  return { ...word, text: `${start}${word.text}`, span: `${start}${word.span}` }
}

/** Adds a test `[ … ]` to the plan if the test consists of plain words and operators. Returns false for other tests. */
export function readTest(walk: Walk, node: ShellNode, at: Directories): boolean {
  const opening = node.children[0]?.type
  const words = opening === "[" || opening === "[[" ? testWords(node) : undefined
  if (!words || (opening === "[[" && words.some((word) => arithmeticTests.has(walk.source(word)))))
    return false
  const argv = words.map((word) => walk.readWord(word, at))
  addCommand(walk, { argv, source: walk.source(node), at, assigns: false, reason: undefined })
  return true
}

/** Operators whose operands `[[` evaluates as arithmetic, which can run commands. */
const arithmeticTests: ReadonlySet<string> = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"])

/** Maximum nesting depth of wrappers. */
const maxWrapping = 12

interface Found {
  argv: Word[]
  source: string
  at: Directories
  assigns: boolean
  assignments?: readonly string[]
  /** Why the command cannot be analyzed, regardless of its words. */
  reason: string | undefined
  /** The command that runs this command. */
  wrapper?: PlannedCommand
}

function addCommand(walk: Walk, command: Found): Exit {
  const { argv, source, assigns, assignments = [], reason, wrapper } = command
  const [program, ...words] = argv
  if (!program) return exitAt(command.at)
  const name = basename(program.text)
  const option = findProgram(name)?.startsIn
  const at = option === undefined ? command.at : startOf(option, command.at, words)
  const planned: PlannedCommand = {
    argv,
    source,
    pattern: joinWords(argv),
    denyForms: [],
    assigns,
    ...(at ? { directories: at } : {}),
  }
  if (wrapper) planned.wrapper = wrapper
  if (assignments.length > 0) planned.assignments = assignments
  walk.found.commands.push(planned)
  const opaque = reason ?? wordsProblem(program, argv) ?? builtinReason(name, words)
  if (opaque !== undefined) planned.opaque = opaque
  if (isReservedWord(name)) {
    walk.found.garbled = true
    planned.denyForms.push(...tails(words))
  }

  const evaluated = evaluatedText(name, words)
  if (evaluated !== undefined)
    walk.found.texts.push({ text: evaluated, directories: name === "eval" ? at : undefined })
  let moved = mayMove(name)
  const inners = innerCommands(name, words)
  for (const inner of inners) {
    if (inner.kind === "argv" && depthOf(planned) < maxWrapping) {
      const exit = addCommand(walk, { ...innerCommand(inner, at), source, wrapper: planned })
      moved ||= !inner.moved && exit.success !== at
    } else if (inner.kind === "shell") walk.found.texts.push({ text: inner.text, directories: at })
    else if (inner.kind === "among") {
      planned.denyForms.push(...possibleCommands(inner.words))
      const own = inputUse(name, words)
      planned.inputUse = own === "runs" ? own : innerInputUse(inner.words)
    } else {
      planned.opaque ??= inner.kind === "uncertain" ? inner.reason : "it has too many nested wrappers"
      planned.denyForms.push(...possibleCommands(words))
      planned.inputUse = "runs"
    }
  }
  planned.inputUse ??= inputUse(name, words)
  const isUnderstood = planned.opaque === undefined && inners.length > 0
  // Variables would also be set for the inner command.
  const isPlain = isUnderstood && assignments.length === 0 && isTransparent(name, words)
  if (isPlain && inners.every(({ kind }) => kind === "argv" || kind === "shell")) planned.transparent = true
  if (name === "cd" || name === "chdir")
    return { success: assigns ? undefined : enter(at, words), failure: at }
  return exitAt(moved ? undefined : command.at)
}

function depthOf({ wrapper }: PlannedCommand): number {
  return wrapper ? depthOf(wrapper) + 1 : 0
}

/**
 * Returns the working directories of a program that changes its directory before it does anything else, such as `git
 * -C here -C there`.
 */
function startOf(option: string, at: Directories, words: readonly Word[], depth = 0): Directories {
  const index = words.findIndex(({ text }) => text.startsWith(option))
  const word = words[index]
  const target =
    word?.text === option ? words[index + 1] : word && { ...word, text: word.text.slice(option.length) }
  if (!target || words.slice(0, index).some(({ text }) => !text.startsWith("-"))) return at
  return depth < maxMoves
    ? startOf(option, enter(at, [target]), words.slice(index + 2), depth + 1)
    : undefined
}

/** Maximum number of `-C` options to follow. */
const maxMoves = 8

function innerCommand(
  inner: Extract<Inner, { kind: "argv" }>,
  at: Directories,
): Pick<Found, "argv" | "at" | "assigns" | "assignments" | "reason"> {
  const isHarmless = ({ text }: Word) => isHarmlessVariable(text.slice(0, text.indexOf("=")))
  return {
    argv: inner.argv,
    at: inner.moved ? undefined : at,
    assigns: inner.assignments.length > 0,
    assignments: inner.assignments.filter((word) => !isHarmless(word)).map(({ text }) => text),
    reason: undefined,
  }
}

function wordsProblem(program: Word, argv: readonly Word[]): string | undefined {
  if (program.dynamic || (program.glob && program.text !== "[")) {
    return "the program it runs is known only at run time"
  }
  return argv.find((word) => word.problem !== undefined)?.problem
}

function areSeparate(walk: Walk, parts: readonly ShellNode[]): boolean {
  return parts.every((part, index) => {
    const before = parts[index - 1]
    if (!before) return true
    const gap = walk.between(before.end, part.start)
    return gap !== "" && !gap.replaceAll("\\\n", "").includes("\n")
  })
}

function testWords(node: ShellNode): ShellNode[] | undefined {
  const words: ShellNode[] = []
  for (const child of node.children) {
    const nested = child.type === "unary_expression" || child.type === "binary_expression"
    if (child.named && !nested && !wordTypes.has(child.type) && child.type !== "test_operator")
      return undefined
    const inner = nested ? testWords(child) : [child.named ? child : { ...child, type: "word" }]
    if (!inner) return undefined
    words.push(...inner)
  }
  return words
}

/**
 * Returns why a builtin cannot be judged by its arguments: it evaluates its arguments as code, or it changes how later
 * commands are found, named or expanded. Returns undefined for other builtins.
 */
function builtinReason(name: string, words: readonly Word[]): string | undefined {
  if (reserved.has(name)) return `${name} is a shell keyword`
  const builtin = findProgram(name)?.builtin
  if (builtin === "evaluates") return `${name} can run text that is built at run time`
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
function evaluatedText(name: string, words: readonly Word[]): string | undefined {
  const texts = words.map((word) => word.text)
  if (name === "eval") return texts.join(" ")
  if (name === "trap") return texts.find((text) => !text.startsWith("-"))
  return undefined
}

/**
 * Returns true for shell keywords. A keyword in the position of a command means that the text was parsed incorrectly.
 */
function isReservedWord(name: string): boolean {
  return reserved.has(name)
}

/** Returns true for builtins after which the shell may be in any directory. */
function mayMove(name: string): boolean {
  return findProgram(name)?.builtin === "evaluates" || name === "pushd" || name === "popd"
}

/** Returns true for a variable that does not make any known program or shell run, load or redirect anything. */
function isHarmlessVariable(name: string): boolean {
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
