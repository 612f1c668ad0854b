import { isAbsolute, join } from "node:path"
import type { ShellNode } from "./parse.ts"
import type { InputUse } from "./risks.ts"
import { type Binding, type Bindings, bindingOf, type Word, wordOf } from "./words.ts"

/** One command that a command text runs, at any nesting depth. */
export interface PlannedCommand {
  /** The program and its arguments, without quotes. */
  argv: Word[]
  /** The command as written in the text. */
  source: string
  /** The words joined by single blanks. Rules match this pattern. */
  pattern: string
  /** The reason why only a rule with the pattern `*` can allow the command. */
  opaque?: string
  /** Commands that this command may run. Only deny rules are matched against them. */
  denyForms: string[]
  /** How the command uses its standard input as code. */
  inputUse?: InputUse
  /** Whether the text connects an input to the command: a redirection or the output of another command. */
  fed?: true
  /** Here-documents and here-strings that the command receives as input. */
  inputs?: readonly string[]
  /** Whether one of these inputs contains the value of a variable that is known only at run time. */
  unknownInput?: true
  /** Whether the command runs its standard input. A rule must name the input. */
  runsInput?: true
  /** Text of the command's input that may be code. The text is searched for commands and files that a rule denies. */
  code?: string
  /**
   * Directories in which the command may run: relative to the initial directory, absolute, or below `~`. Undefined if
   * they are unknown.
   */
  directories?: readonly string[]
  /** Whether the text sets variables for the command. */
  assigns: boolean
  /** Assignments for the command, as written, whose variables are not known to be harmless. A rule must name them. */
  assignments?: readonly string[]
  /** Whether the command only runs other commands in the plan. A rule that allows these commands is enough. */
  transparent?: true
  /** The previous command in the pipeline, if this command reads only the standard output of that command. */
  input?: PlannedCommand
  /**
   * The wrapper: the command in the plan that runs this command. The wrapper may name files in this command's words.
   */
  wrapper?: PlannedCommand
}

/** A file that the shell itself opens, or a loop value. */
export interface PlannedFile {
  kind: "read" | "write" | "mention"
  target: Word
  directories?: readonly string[]
}

/** The commands and files in a command text. */
export interface ShellPlan {
  readonly commands: PlannedCommand[]
  readonly files: PlannedFile[]
  /**
   * Why the text could not be analyzed. If set, `commands` may be incomplete.
   */
  opaque?: string
  /** Whether the boundaries between commands are uncertain. The plan may then lack commands. */
  garbled: boolean
}

/**
 * Directories in which a command may run: relative to the initial directory (`.`), absolute, or below `~`. Undefined if
 * they are unknown.
 */
export type Directories = readonly string[] | undefined

/** The directory in which every text starts. */
export const startDirectories: Directories = ["."]

/** Maximum number of possible directories. If there are more, the directories count as unknown. */
const maxDirectories = 8

/** Returns the union of two lists of directories. */
export function union(a: Directories, b: Directories): Directories {
  if (!a || !b) return undefined
  const all = [...new Set([...a, ...b])]
  return all.length > maxDirectories ? undefined : all
}

/**
 * Returns the possible directories after `cd` with these words. Follows only literal names without `..`, because the
 * effect of `..` depends on symbolic links.
 */
export function enter(from: Directories, words: readonly Word[]): Directories {
  const [target, ...more] = words.filter((word) => word.text !== "--")
  if (!target) return ["~"]
  if (more.length > 0 || target.dynamic || target.glob || target.text.startsWith("-")) return undefined
  if (target.text.split("/").includes("..")) return undefined
  if (target.base === "home") return [`~${target.tail ?? ""}`]
  const name = target.base === "directory" ? `.${target.tail ?? ""}` : target.text
  return compose(from, [name])
}

/** Resolves the directories `inner` relative to `outer`. */
export function compose(outer: Directories, inner: Directories): Directories {
  if (!inner) return undefined
  const fixed = inner.filter((directory) => isFixed(directory))
  if (fixed.length === inner.length) return inner
  if (!outer) return undefined
  const moving = inner.filter((directory) => !isFixed(directory))
  const joined = outer.flatMap((directory) =>
    moving.map((name) => (directory.startsWith("~") ? `${directory}/${name}` : join(directory, name))),
  )
  return union(fixed, joined)
}

function isFixed(directory: string): boolean {
  return isAbsolute(directory) || directory === "~" || directory.startsWith("~/")
}

/**
 * The commands and files in a tree. `texts` are command texts that the commands run, such as the text of `sh -c`.
 * `problem` is the reason why the text could not be analyzed.
 */
export interface Walked {
  commands: PlannedCommand[]
  files: PlannedFile[]
  texts: FoundText[]
  /** The inputs that redirections open, until they are assigned to commands. An empty text represents a file. */
  inputs: FoundInput[]
  /** Whether `exec` redirects the input of later commands. */
  redirectsInput?: true
  problem?: string
  /** Whether the boundaries between commands are uncertain. The plan may then lack commands. */
  garbled: boolean
}

/** An input that a redirection opens. See `inputs` and `unknownInput` of {@link PlannedCommand}. */
export interface FoundInput {
  text: string
  unknown: boolean
}

/** A command text that a command such as `sh -c` or `eval` runs, with that command's input. */
export interface FoundText extends Pick<PlannedCommand, "fed" | "inputs" | "unknownInput"> {
  text: string
  directories: Directories
}

/** Numbers of commands, texts and inputs found up to a point in the walk. */
export type Position = Readonly<Record<"commands" | "texts" | "inputs", number>>

/** The shell's possible directories after a statement succeeds or fails. */
export interface Exit {
  success: Directories
  failure: Directories
}

/** The context shared by the functions that analyze a tree. */
export interface Walk {
  readonly found: Walked
  /** The values of the loop variables around the current statement. */
  bindings: Bindings
  /** Returns the text of a node as written. */
  source(node: ShellNode): string
  /** Returns the text from one index to another. */
  between(start: number, end: number): string
  /** Records why the text could not be analyzed. Keeps only the first reason. */
  problem(reason: string): void
  /** Returns the position that the walk has reached. */
  position(): Position
  /**
   * Assigns the inputs that were found after a position to the commands and texts that were found after the same
   * position.
   */
  feed(since: Position, piped?: boolean): void
  /** Analyzes a statement that starts in these directories. */
  visit(node: ShellNode, at: Directories): Exit
  /** Returns the word of a node. Also analyzes the commands in the word. */
  readWord(node: ShellNode, at: Directories): Word
  /**
   * Returns the value of a loop variable for one word in the loop, or undefined if the value is known only at run time.
   */
  binding(node: ShellNode): Binding | undefined
  /** Analyzes the commands in the substitutions of a node and its descendants. */
  substitutionsIn(node: ShellNode, at: Directories): void
}

/** Returns an exit with the same directories for success and failure. */
export function exitAt(directories: Directories): Exit {
  return { success: directories, failure: directories }
}

/** Creates the context for one tree. `statements` analyzes the children of a substitution. */
export function createWalk(
  text: string,
  parts: Pick<Walk, "visit"> & { statements(node: ShellNode, at: Directories, walk: Walk): void },
): Walk {
  const found: Walked = { commands: [], files: [], texts: [], inputs: [], garbled: false }

  function substitute(node: ShellNode, at: Directories): void {
    const written = walk.source(node).trimStart()
    if (written.startsWith("`") && written.includes("\\"))
      walk.problem("escapes within backticks cannot be parsed")
    parts.statements(node, at, walk)
  }

  const walk: Walk = {
    found,
    bindings: new Map(),
    source: (node) => text.slice(node.start, node.end),
    between: (start, end) => text.slice(start, end),
    problem(reason) {
      found.problem ??= reason
    },
    position: () => ({
      commands: found.commands.length,
      texts: found.texts.length,
      inputs: found.inputs.length,
    }),
    feed({ commands, texts, inputs }, piped = false) {
      const own = found.inputs.splice(inputs)
      if (own.length === 0 && !piped) return
      for (const each of [...found.commands.slice(commands), ...found.texts.slice(texts)]) {
        each.fed = true
        each.inputs = [...(each.inputs ?? []), ...own.flatMap(({ text }) => text || [])]
        if (own.some(({ unknown }) => unknown)) each.unknownInput = true
      }
    },
    visit: parts.visit,
    readWord(node, at) {
      const word = wordOf(node, text, walk.bindings)
      for (const substitution of word.substitutions) substitute(substitution, at)
      return word
    },
    binding: (node) => bindingOf(node, text),
    substitutionsIn(node, at) {
      if (substitutionTypes.has(node.type)) substitute(node, at)
      else for (const child of node.children) walk.substitutionsIn(child, at)
    },
  }
  return walk
}

/** Nodes that redirect the input or output of a command. */
export const redirectTypes = new Set(["file_redirect", "heredoc_redirect", "herestring_redirect"])

/** Nodes that a shell replaces with the output of commands, or with a file that contains this output. */
export const substitutionTypes = new Set(["command_substitution", "process_substitution"])

/** Nodes that are words of a command. */
export const wordTypes = new Set([
  ...substitutionTypes,
  "word",
  "number",
  "raw_string",
  "string",
  "ansi_c_string",
  "translated_string",
  "concatenation",
  "simple_expansion",
  "expansion",
  "arithmetic_expansion",
  "brace_expression",
  "extglob_pattern",
])
