import type { Directories } from "./directories.ts"
import type { ShellNode } from "./parse.ts"
import type { PlannedCommand, PlannedFile } from "./shell-plan.ts"
import { type Word, wordOf } from "./words.ts"

/** What a tree holds. `texts` are for further shells; `problem`: why the whole is not understood. */
export interface Walked {
  commands: PlannedCommand[]
  files: PlannedFile[]
  texts: { text: string; directories: Directories }[]
  problem?: string
  /** Where commands begin and end is not certain: some may have been missed. */
  garbled: boolean
}

/** Where the shell stands after a statement, by how the statement ended. */
export interface Exit {
  success: Directories
  failure: Directories
}

/** What the parts of the walk over a tree share. */
export interface Walk {
  readonly found: Walked
  /** The text of a node as written. */
  source(node: ShellNode): string
  /** The text from one index to another. */
  between(start: number, end: number): string
  /** Notes why the whole is not understood. The first reason stays. */
  problem(reason: string): void
  /** Follows a statement that starts in these places. */
  visit(node: ShellNode, at: Directories): Exit
  /** The word of a node; the commands that make it are followed. */
  readWord(node: ShellNode, at: Directories): Word
  /** Follows the commands that stand anywhere below a node within a word. */
  substitutionsIn(node: ShellNode, at: Directories): void
}

/** Both ways out lead to the same places. */
export function exitAt(places: Directories): Exit {
  return { success: places, failure: places }
}

/** The context of one tree. `statements` follows the children of a substitution. */
export function createWalk(
  text: string,
  parts: Pick<Walk, "visit"> & { statements(node: ShellNode, at: Directories, walk: Walk): void },
): Walk {
  const found: Walked = { commands: [], files: [], texts: [], garbled: false }

  function substitute(node: ShellNode, at: Directories): void {
    const written = walk.source(node).trimStart()
    if (written.startsWith("`") && written.includes("\\"))
      walk.problem("escapes within backticks are not understood")
    parts.statements(node, at, walk)
  }

  const walk: Walk = {
    found,
    source: (node) => text.slice(node.start, node.end),
    between: (start, end) => text.slice(start, end),
    problem(reason) {
      found.problem ??= reason
    },
    visit: parts.visit,
    readWord(node, at) {
      const word = wordOf(node, text)
      for (const substitution of word.substitutions) substitute(substitution, at)
      return word
    },
    substitutionsIn(node, at) {
      if (substitutionTypes.has(node.type)) substitute(node, at)
      else for (const child of node.children) walk.substitutionsIn(child, at)
    },
  }
  return walk
}

/** Nodes that lead the input or output of a command elsewhere. */
export const redirectTypes = new Set(["file_redirect", "heredoc_redirect", "herestring_redirect"])

/** Nodes that stand for what commands in them print. */
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
