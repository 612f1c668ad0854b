import { basename } from "node:path"
import { builtinReason, evaluatedText, isHarmlessLoopVariable, isHarmlessVariable } from "./builtins.ts"
import { type Directories, enter, startDirectories, union } from "./directories.ts"
import type { ShellNode } from "./parse.ts"
import type { PlannedCommand, PlannedFile } from "./plan.ts"
import { type Word, wordOf } from "./words.ts"
import { innerCommands } from "./wrappers.ts"

/** What a tree holds. `texts` are for further shells; `fault`: why the whole is not understood. */
export interface Walked {
  commands: PlannedCommand[]
  files: PlannedFile[]
  texts: { text: string; directories: Directories }[]
  fault?: string
}

/** Where the shell stands after a statement, by how the statement ended. */
interface Exit {
  success: Directories
  failure: Directories
}

/** Commands that wrappers run are followed this deep. */
const maxWrapping = 12

/** Lists every command of the tree, in the order of the text, and the files that the shell itself opens. */
export function walkCommands(tree: ShellNode, text: string): Walked {
  const found: Walked = { commands: [], files: [], texts: [] }
  sequence(tree.children, startDirectories)
  return found

  function fault(reason: string): void {
    found.fault ??= reason
  }

  function source(node: ShellNode): string {
    return text.slice(node.start, node.end)
  }

  function sequence(nodes: readonly ShellNode[], start: Directories): Exit {
    let exit: Exit = { success: start, failure: start }
    let last: ShellNode | undefined
    for (const node of nodes) {
      if (!node.named) continue
      if (node.type === "comment") continue
      exit = visit(node, last ? union(exit.success, exit.failure) : start)
      last = node
    }
    return exit
  }

  /** Runs the parts one after the other where some of them may be left out: every place they may lead to is kept. */
  function branches(nodes: readonly ShellNode[], start: Directories): Exit {
    let places = start
    for (const node of nodes) {
      if (!node.named || node.type === "comment") continue
      const { success, failure } = visit(node, places)
      places = union(places, union(success, failure))
    }
    return { success: places, failure: places }
  }

  function visit(node: ShellNode, at: Directories): Exit {
    const stay: Exit = { success: at, failure: at }
    switch (node.type) {
      case "command":
        return simpleCommand(node, [], at)
      case "redirected_statement":
        return redirected(node, at)
      case "list":
        return list(node, at)
      case "pipeline": {
        // Some shells run the last command of a pipeline themselves.
        for (const child of node.children.slice(0, -1)) if (child.named) visit(child, at)
        const last = node.children.at(-1)
        const exit = last ? visit(last, at) : stay
        const places = union(at, union(exit.success, exit.failure))
        return { success: places, failure: places }
      }
      case "subshell":
        sequence(node.children, at)
        return stay
      case "compound_statement":
        if (node.children[0]?.type === "((") return notUnderstood(node, at)
        return sequence(node.children, at)
      case "negated_command": {
        const exit = sequence(node.children, at)
        return { success: exit.failure, failure: exit.success }
      }
      case "if_statement":
      case "elif_clause":
      case "else_clause":
        return branches(node.children, at)
      case "while_statement":
      case "do_group":
        return loop(node, at)
      case "for_statement":
        return forLoop(node, at)
      case "case_statement":
      case "case_item":
        return caseParts(node, at)
      case "variable_assignment":
      case "variable_assignments":
        assignment(node, at)
        return stay
      case "test_command":
        return test(node, at)
      case "declaration_command":
      case "unset_command":
        return shellCommand(node, at)
      default:
        return notUnderstood(node, at)
    }
  }

  function list(node: ShellNode, at: Directories): Exit {
    const [left, right] = node.children.filter((child) => child.named && child.type !== "comment")
    if (!left || !right) return notUnderstood(node, at)
    const first = visit(left, at)
    if (node.children.some((child) => child.type === "&&")) {
      const second = visit(right, first.success)
      return { success: second.success, failure: union(first.failure, second.failure) }
    }
    const second = visit(right, first.failure)
    return { success: union(first.success, second.success), failure: second.failure }
  }

  /** A round may start where the one before ended: a loop that changes its place could be anywhere. */
  function loop(node: ShellNode, at: Directories): Exit {
    const moves = /\b(?:cd|chdir|pushd|popd)\b/.test(source(node))
    const start = moves ? undefined : at
    const exit = branches(node.children, start)
    if (exit.success?.join("\n") !== start?.join("\n")) fault("a loop in it changes its directory")
    return exit
  }

  function forLoop(node: ShellNode, at: Directories): Exit {
    const [variable, ...rest] = node.children.filter((child) => child.named && child.type !== "comment")
    const name = variable ? source(variable) : ""
    if (variable?.type !== "variable_name" || !isHarmlessLoopVariable(name))
      fault(`a loop in it sets ${name}`)
    const body = rest.at(-1)
    if (body?.type !== "do_group") return notUnderstood(node, at)
    for (const value of rest.slice(0, -1)) {
      const word = readWord(value, at)
      if (word.fault !== undefined) fault(word.fault)
      found.files.push({ kind: "mention", target: word, directories: at })
    }
    return visit(body, at)
  }

  function caseParts(node: ShellNode, at: Directories): Exit {
    const statements: ShellNode[] = []
    const delimiter = node.children.findIndex(
      (child) => child.type === (node.type === "case_item" ? ")" : "in"),
    )
    for (const [index, child] of node.children.entries()) {
      if (!child.named || child.type === "comment") continue
      if (index > delimiter) statements.push(child)
      else if (readWord(child, at).fault !== undefined && child.type !== "extglob_pattern")
        fault("a pattern in it is not understood")
    }
    return branches(statements, at)
  }

  function assignment(node: ShellNode, at: Directories): void {
    if (node.type === "variable_assignments") {
      for (const child of node.children) assignment(child, at)
      return
    }
    const [name, , value] = node.children
    substitutionsIn(node, at)
    if (!name || !isHarmlessAssignment(name, value)) fault(`it sets ${name ? source(name) : "a variable"}`)
  }

  function isHarmlessAssignment(name: ShellNode, value: ShellNode | undefined): boolean {
    if (!isHarmlessVariable(source(name))) return false
    return value === undefined || /^[\w.,:@+-]*$/.test(source(value))
  }

  function test(node: ShellNode, at: Directories): Exit {
    if (node.children[0]?.type !== "[") return notUnderstood(node, at)
    const words = testWords(node)
    if (!words) return notUnderstood(node, at)
    addCommand({ argv: words.map((word) => readWord(word, at)), node, at })
    return { success: at, failure: at }
  }

  /** The words of `[ … ]` where it is made of plain words and operators between them. */
  function testWords(node: ShellNode): ShellNode[] | undefined {
    const words: ShellNode[] = []
    for (const child of node.children) {
      const inner = /^(?:unary|binary)_expression$/.test(child.type) ? testWords(child) : [child]
      if (!inner || child.type === "parenthesized_expression") return undefined
      words.push(...inner.map((word) => (word.named ? word : { ...word, type: "word" })))
    }
    return words
  }

  /** `export`, `declare`, `unset`: their words, for denies; they change too much for an allow. */
  function shellCommand(node: ShellNode, at: Directories): Exit {
    const argv = node.children.map((child) =>
      child.type === "variable_assignment" || !child.named ? readPlain(child, at) : readWord(child, at),
    )
    addCommand({ argv, node, at })
    return { success: at, failure: at }
  }

  function readPlain(node: ShellNode, at: Directories): Word {
    substitutionsIn(node, at)
    return wordOf({ ...node, type: "word", children: [] }, text)
  }

  function redirected(node: ShellNode, at: Directories): Exit {
    const body = node.children.find((child) => child.named && !redirectTypes.has(child.type))
    const extra: ShellNode[] = []
    for (const child of node.children) if (redirectTypes.has(child.type)) extra.push(...redirect(child, at))
    const heredocs = node.children.filter((child) => child.type === "heredoc_redirect")
    let exit: Exit = { success: at, failure: at }
    if (!body || body.type === "command") {
      if (body || extra.length > 0) exit = simpleCommand(body, extra, at)
    } else {
      if (extra.length > 0) fault("words after a redirection are not understood")
      exit = visit(body, at)
    }
    // What stands on the line of a here-document after its mark hangs below it in the tree.
    for (const statement of heredocs.flatMap(heredocStatements)) {
      const { success, failure } = visit(statement, union(exit.success, exit.failure))
      exit = { success: union(exit.success, success), failure: union(exit.failure, failure) }
    }
    return exit
  }

  /** Notes what a redirection opens. Returns the words after its target: the grammar takes them in, a shell does not. */
  function redirect(node: ShellNode, at: Directories): ShellNode[] {
    if (node.type === "heredoc_redirect") return heredoc(node, at)
    const words = node.children.filter((child) => child.named && child.type !== "file_descriptor")
    const operator = node.children.find((child) => !child.named)?.type ?? ""
    if (operator === ">&-" || operator === "<&-") return words
    const [target, ...extra] = words
    if (!target) {
      fault("a redirection has no target")
      return []
    }
    const word = readWord(target, at)
    if (word.fault !== undefined) fault(word.fault)
    if (operator === "<<<") return extra
    const duplicates = /^(?:\d+-?|-)$/.test(word.text) && !word.dynamic
    if (operator === "<") found.files.push({ kind: "read", target: word, directories: at })
    else if (/^(?:>|>>|>\||&>|&>>)$/.test(operator))
      found.files.push({ kind: "write", target: word, directories: at })
    else if (operator === ">&" && !duplicates)
      found.files.push({ kind: "write", target: word, directories: at })
    else if (!(duplicates && /^[<>]&$/.test(operator))) fault(`the redirection ${operator} is not understood`)
    return extra
  }

  /** A here-document is understood where its end is where a shell would see it and its text cannot run commands. */
  function heredoc(node: ShellNode, at: Directories): ShellNode[] {
    const [start, body, end] = ["heredoc_start", "heredoc_body", "heredoc_end"].map((type) =>
      node.children.find((child) => child.type === type),
    )
    if (!start || !body || !end) {
      fault("a here-document is not understood")
      return []
    }
    const mark = source(start)
    const name = /^(?:'([\w.-]+)'|"([\w.-]+)"|\\?([\w.-]+))$/
      .exec(mark)
      ?.slice(1)
      .find((part) => part !== undefined)
    const content = text.slice(text.indexOf("\n", start.end) + 1, end.start)
    const lines = content.split("\n").slice(0, -1)
    const ends = lines.some((line) => line.replace(/^\t+/, "") === name)
    if (name === undefined || source(end).trim() !== name || ends)
      fault("the end of a here-document is not clear")
    if (name === mark && /[`$\\]/.test(content)) {
      substitutionsIn(body, at)
      if (/`|\$[^\w\s]|\\/.test(content)) fault("a here-document runs commands")
    }
    const redirects = node.children.filter((child) => redirectTypes.has(child.type))
    const words = node.children.filter((child) => child.named && wordTypes.has(child.type))
    return [...words, ...redirects.flatMap((child) => redirect(child, at))]
  }

  function heredocStatements(node: ShellNode): ShellNode[] {
    const [start, body] = [
      node.children.findIndex((child) => child.type === "heredoc_start"),
      node.children.findIndex((child) => child.type === "heredoc_body"),
    ]
    return node.children
      .slice(start + 1, body)
      .filter((child) => child.named && !redirectTypes.has(child.type) && !wordTypes.has(child.type))
      .flatMap((child) =>
        child.type === "pipeline" && !child.children[0]?.named
          ? child.children.filter((part) => part.named)
          : [child],
      )
  }

  function simpleCommand(node: ShellNode | undefined, extra: readonly ShellNode[], at: Directories): Exit {
    const parts: ShellNode[] = []
    let assigns = false
    let reason: string | undefined
    for (const child of node?.children ?? []) {
      if (child.type === "variable_assignment") {
        const [name, , value] = child.children
        substitutionsIn(child, at)
        assigns = true
        if (!name || !isHarmlessAssignment(name, value))
          reason ??= `it sets ${name ? source(name) : "a variable"}`
      } else if (redirectTypes.has(child.type)) {
        if (isDescriptorName(parts.at(-1), child)) reason ??= "a redirection sets a variable"
        parts.push(...redirect(child, at))
      } else if (child.named && (child.type === "command_name" || wordTypes.has(child.type)))
        parts.push(child)
      else {
        reason ??= `${source(child).slice(0, 40)} is not understood`
        substitutionsIn(child, at)
        if (child.type === "subshell") visit(child, at)
      }
    }
    parts.push(...extra)
    parts.sort((a, b) => a.start - b.start)
    if (!areSeparate(parts)) reason ??= "where its words end is not clear"
    const argv = parts.map((part) => readWord(part, at))
    const owner = node ?? parts[0]
    if (!owner) return { success: at, failure: at }
    return addCommand({ argv, node: owner, at, assigns, ...(reason === undefined ? {} : { reason }) })
  }

  function isDescriptorName(word: ShellNode | undefined, redirection: ShellNode): boolean {
    return word !== undefined && word.end === redirection.start && /^\{\w+\}$/.test(source(word))
  }

  function areSeparate(parts: readonly ShellNode[]): boolean {
    return parts.every((part, index) => {
      const before = parts[index - 1]
      if (!before) return true
      const gap = text.slice(before.end, part.start)
      return gap !== "" && !gap.replaceAll("\\\n", "").includes("\n")
    })
  }

  interface Found {
    argv: Word[]
    node: ShellNode
    at: Directories
    assigns?: boolean
    reason?: string
    /** How many wrappers are around it. */
    depth?: number
  }

  function addCommand({ argv, node, at, assigns = false, reason, depth = 0 }: Found): Exit {
    const [program, ...words] = argv
    const exit: Exit = { success: at, failure: at }
    if (!program) return exit
    const name = basename(program.text)
    const pattern = joinWords(argv)
    const command: PlannedCommand = {
      argv,
      source: source(node),
      pattern,
      denyForms: [],
      assigns,
      wrapped: depth > 0,
    }
    if (at) command.directories = at
    found.commands.push(command)

    const unclear = program.dynamic || (program.glob && program.text !== "[")
    const opaque =
      reason ??
      (unclear ? "which program it runs is known only when it runs" : undefined) ??
      argv.find((word) => word.fault !== undefined)?.fault ??
      builtinReason(name, words)
    if (opaque !== undefined) command.opaque = opaque

    const evaluated = evaluatedText(name, words)
    if (evaluated !== undefined) found.texts.push({ text: evaluated, directories: undefined })
    for (const inner of innerCommands(name, words)) {
      if (inner.kind === "shell") found.texts.push({ text: inner.text, directories: at })
      else if (inner.kind === "argv" && depth < maxWrapping) {
        const badly = inner.assignments.find(
          ({ text: set }) => !isHarmlessVariable(set.slice(0, set.indexOf("="))),
        )
        const next: Found = {
          argv: inner.argv,
          node,
          at: inner.moved ? undefined : at,
          assigns: inner.assignments.length > 0,
          depth: depth + 1,
        }
        addCommand(badly ? { ...next, reason: `it sets ${badly.text}` } : next)
      } else {
        command.opaque ??= inner.kind === "uncertain" ? inner.reason : "it is wrapped too deeply"
        command.denyForms.push(...suffixes(words))
      }
    }
    if (name !== "cd" && name !== "chdir") return exit
    return { success: enter(at, words), failure: at }
  }

  /** The word, with the commands that make it already noted. */
  function readWord(node: ShellNode, at: Directories): Word {
    const word = wordOf(node, text)
    for (const substitution of word.substitutions) substitute(substitution, at)
    return word
  }

  function substitutionsIn(node: ShellNode, at: Directories): void {
    if (node.type === "command_substitution" || node.type === "process_substitution") substitute(node, at)
    else for (const child of node.children) substitutionsIn(child, at)
  }

  function substitute(node: ShellNode, at: Directories): void {
    if (source(node).trimStart().startsWith("`") && source(node).includes("\\"))
      fault("escapes within backticks are not understood")
    sequence(node.children, at)
  }

  /** Whatever it is: the commands that stand in it are found, for denies, and the whole counts as not understood. */
  function notUnderstood(node: ShellNode, at: Directories): Exit {
    fault(reasonFor(node.type))
    for (const child of node.children) {
      if (statementTypes.has(child.type)) visit(child, undefined)
      else if (child.type === "command_substitution" || child.type === "process_substitution")
        substitute(child, at)
      else if (redirectTypes.has(child.type)) redirect(child, undefined)
      else if (child.children.length > 0) notUnderstood(child, undefined)
    }
    return { success: undefined, failure: undefined }
  }
}

function reasonFor(type: string): string {
  if (type === "function_definition") return "a function in it may replace a program"
  if (type === "ERROR" || type === "MISSING") return "its syntax is not understood"
  return `${type.replaceAll("_", " ")} is not understood`
}

/** Every tail of the words: one of them is the command that an unknown wrapper runs. */
function suffixes(words: readonly Word[]): string[] {
  const forms: string[] = []
  for (let from = 0; from < Math.min(words.length, maxSuffixes); from++) {
    const tail = words.slice(from)
    forms.push(joinWords(tail))
    const [program] = tail
    if (program?.text.includes("/"))
      forms.push(joinWords([{ ...program, text: basename(program.text) }, ...tail.slice(1)]))
  }
  return forms
}

const maxSuffixes = 24

function joinWords(words: readonly Word[]): string {
  return words.map((word) => word.text).join(" ")
}

const redirectTypes = new Set(["file_redirect", "heredoc_redirect", "herestring_redirect"])

const wordTypes = new Set([
  "word",
  "number",
  "raw_string",
  "string",
  "ansi_c_string",
  "translated_string",
  "concatenation",
  "simple_expansion",
  "expansion",
  "command_substitution",
  "process_substitution",
  "arithmetic_expansion",
  "brace_expression",
  "extglob_pattern",
])

const statementTypes = new Set([
  "command",
  "redirected_statement",
  "list",
  "pipeline",
  "subshell",
  "compound_statement",
  "negated_command",
  "if_statement",
  "while_statement",
  "for_statement",
  "case_statement",
  "variable_assignment",
  "variable_assignments",
  "test_command",
  "declaration_command",
  "unset_command",
  "c_style_for_statement",
  "function_definition",
])
