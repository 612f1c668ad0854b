import type { ShellNode } from "./parse.ts"
import { findProgram } from "./program-table.ts"
import { readRedirection, statementsAfterMark } from "./redirections.ts"
import {
  createWalk,
  type Directories,
  type Exit,
  exitAt,
  type PlannedCommand,
  redirectTypes,
  startDirectories,
  substitutionTypes,
  union,
  type Walk,
  type Walked,
} from "./shell-plan.ts"
import {
  assignmentProblem,
  isHarmlessLoopVariable,
  readShellCommand,
  readSimpleCommand,
  readTest,
} from "./simple-command.ts"
import { type Binding, quoted } from "./words.ts"

/**
 * Lists every command in the tree in text order, and the files that the shell itself opens. Tracks all possible working
 * directories through `cd`.
 */
export function walkCommands(tree: ShellNode, text: string): Walked {
  const walk = createWalk(text, { visit, statements: (node, at) => sequence(node.children, at) })
  sequence(tree.children, startDirectories)
  return walk.found

  function sequence(nodes: readonly ShellNode[], start: Directories): Exit {
    let exit = exitAt(start)
    for (const node of statementsOf(nodes)) exit = visit(node, union(exit.success, exit.failure))
    return exit
  }

  /** Analyzes statements that may be skipped. */
  function branches(nodes: readonly ShellNode[], start: Directories): Exit {
    let directories = start
    for (const node of statementsOf(nodes)) {
      const { success, failure } = visit(node, directories)
      directories = union(directories, union(success, failure))
    }
    return exitAt(directories)
  }

  function visit(node: ShellNode, at: Directories): Exit {
    switch (node.type) {
      case "command":
        return readSimpleCommand(walk, node, [], at)
      case "redirected_statement":
        return redirected(node, at)
      // `$(<file)` consists of a redirection only.
      case "file_redirect":
        readRedirection(walk, node, at)
        walk.problem("it has a redirection without a command")
        return exitAt(at)
      case "list":
        return list(node, at)
      case "pipeline":
        return pipeline(node, at)
      case "subshell":
        sequence(node.children, at)
        return exitAt(at)
      case "compound_statement":
        return node.children[0]?.type === "((" ? notUnderstood(node, at) : sequence(node.children, at)
      case "negated_command": {
        const { success, failure } = sequence(node.children, at)
        return { success: failure, failure: success }
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
        return assignments(node, at)
      case "test_command":
        return readTest(walk, node, at) ? exitAt(at) : notUnderstood(node, at)
      case "declaration_command":
      case "unset_command":
        return readShellCommand(walk, node, at)
      default:
        return notUnderstood(node, at)
    }
  }

  function list(node: ShellNode, at: Directories): Exit {
    const [left, right] = statementsOf(node.children)
    if (!left || !right) return notUnderstood(node, at)
    const first = visit(left, at)
    if (node.children.some((child) => child.type === "&&")) {
      const second = visit(right, first.success)
      return { success: second.success, failure: union(first.failure, second.failure) }
    }
    const second = visit(right, first.failure)
    return { success: union(first.success, second.success), failure: second.failure }
  }

  /**
   * Analyzes a pipeline. Each command runs in its own subshell, except that some shells run the last command without
   * one.
   */
  function pipeline(node: ShellNode, at: Directories): Exit {
    const { commands } = walk.found
    let directories = at
    let input: PlannedCommand | undefined
    for (const [index, child] of statementsOf(node.children).entries()) {
      const since = walk.position()
      const first = commands.length
      const { success, failure } = visit(child, at)
      walk.feed(since, index > 0)
      directories = union(at, union(success, failure))
      const command = commands[first]
      if (command && input && printsOnlyOutput(walk, child)) command.input = input
      // If error messages go into the pipe, the next command reads them as additional lines.
      input = commands.length === first + 1 && printsOnlyOutput(walk, child) ? command : undefined
    }
    // `|&` also passes on error messages.
    if (node.children.some(({ type }) => type === "|&")) for (const command of commands) delete command.input
    return exitAt(directories)
  }

  /**
   * Analyzes a loop. Each iteration starts in the directory where the previous iteration ended. If the loop changes
   * the directory, the directory is therefore unknown.
   */
  function loop(node: ShellNode, at: Directories): Exit {
    const start = /\b(?:cd|chdir|pushd|popd)\b/.test(walk.source(node)) ? undefined : at
    const exit = branches(node.children, start)
    if (exit.success?.join("\n") !== start?.join("\n"))
      walk.problem("it contains a loop that changes the working directory")
    return exit
  }

  function forLoop(node: ShellNode, at: Directories): Exit {
    const [variable, ...rest] = statementsOf(node.children)
    const name = variable ? walk.source(variable) : ""
    if (variable?.type !== "variable_name" || !isHarmlessLoopVariable(name))
      walk.problem(`it contains a loop that sets ${name}`)
    const body = rest.pop()
    if (body?.type !== "do_group") return notUnderstood(node, at)
    const exit = eachValue({ body, name, values: loopValues(walk, rest), at })
    if (exit) {
      // Adds the commands in the words of the values.
      for (const value of rest) walk.readWord(value, at)
      return exit
    }
    for (const value of rest) {
      const word = walk.readWord(value, at)
      if (word.problem !== undefined) walk.problem(word.problem)
      // If the value is known only at run time, so are the words that contain the variable.
      if (!word.dynamic) walk.found.files.push({ kind: "mention", target: word, directories: at })
    }
    return visit(body, at)
  }

  /**
   * Analyzes the body of a loop once for each value of its variable, and keeps only one of several equal commands.
   * Returns undefined and adds nothing if the values are unknown, or if the body may change variables or cannot be
   * analyzed.
   */
  function eachValue(loop: {
    body: ShellNode
    name: string
    values?: Binding[]
    at: Directories
  }): Exit | undefined {
    const { body, name, values, at } = loop
    const assignment = new RegExp(String.raw`\b${name}\+?=|(?<!\$)\{${name}\}|\bfor\s+${name}\b`)
    if (!values || assignment.test(walk.source(body))) return undefined
    const { found, bindings } = walk
    const before = { problem: found.problem, garbled: found.garbled }
    const known = { commands: found.commands.length, files: found.files.length, texts: found.texts.length }
    let end = at
    for (const value of values) {
      walk.bindings = new Map([...bindings, [name, value]])
      const { success, failure } = visit(body, at)
      end = union(end, union(success, failure))
    }
    walk.bindings = bindings
    const added = found.commands.splice(known.commands)
    if (
      found.problem !== before.problem ||
      found.garbled !== before.garbled ||
      added.some(changesVariables)
    ) {
      Object.assign(found, before)
      found.files.length = known.files
      found.texts.length = known.texts
      return undefined
    }
    found.commands.push(...new Map(added.map((command) => [keyOf(command), command])).values())
    return exitAt(end)
  }

  /**
   * Analyzes a `case` statement or one of its items. The words before `in` or `)` are compared. The statements after
   * this delimiter run.
   */
  function caseParts(node: ShellNode, at: Directories): Exit {
    const delimiter = node.children.findIndex(
      (child) => child.type === (node.type === "case_item" ? ")" : "in"),
    )
    for (const word of statementsOf(node.children.slice(0, delimiter))) {
      const { problem } = walk.readWord(word, at)
      if (problem !== undefined) walk.problem(problem)
    }
    return branches(node.children.slice(delimiter + 1), at)
  }

  function assignments(node: ShellNode, at: Directories): Exit {
    for (const assignment of node.type === "variable_assignments" ? node.children : [node]) {
      const problem = assignmentProblem(walk, assignment, at)
      if (problem !== undefined) walk.problem(problem)
    }
    return exitAt(at)
  }

  function redirected(node: ShellNode, at: Directories): Exit {
    const redirections = node.children.filter((child) => redirectTypes.has(child.type))
    const body = statementsOf(node.children).find((child) => !redirectTypes.has(child.type))
    if (body && endsInCommand.has(body.type)) return visit(moveToLast(body, node), at)
    const since = walk.position()
    const extra = redirections.flatMap((child) => readRedirection(walk, child, at))
    let exit = exitAt(at)
    if (!body || body.type === "command") {
      if (body || extra.length > 0) exit = readSimpleCommand(walk, body, extra, at)
    } else {
      if (extra.length > 0) walk.problem("words after a redirection cannot be parsed")
      exit = visit(body, at)
    }
    walk.feed(since)
    for (const { statement, piped } of redirections.flatMap(statementsAfterMark)) {
      const later = walk.position()
      const { success, failure } = visit(statement, union(exit.success, exit.failure))
      walk.feed(later, piped)
      exit = { success: union(exit.success, success), failure: union(exit.failure, failure) }
    }
    return exit
  }

  /** Finds the commands in a node that cannot be analyzed, so that deny rules can match them. */
  function notUnderstood(node: ShellNode, at: Directories): Exit {
    walk.problem(reasonFor(node.type))
    if (!statementTypes.has(node.type)) walk.found.garbled = true
    for (const child of node.children) {
      if (statementTypes.has(child.type)) visit(child, undefined)
      else if (substitutionTypes.has(child.type)) walk.substitutionsIn(child, at)
      else if (redirectTypes.has(child.type)) readRedirection(walk, child, undefined)
      else if (child.children.length > 0) notUnderstood(child, undefined)
    }
    return exitAt(undefined)
  }
}

/** Returns true for a simple command without redirections, except for `2>/dev/null`. */
function printsOnlyOutput(walk: Walk, { type, children }: ShellNode): boolean {
  // A here-string replaces the piped input.
  if (type === "command") return !children.some((child) => redirectTypes.has(child.type))
  const [command, redirection, ...more] = children
  if (type !== "redirected_statement" || command?.type !== "command" || !redirection || more.length > 0)
    return false
  return /^2>\s*\/dev\/null$/.test(walk.source(redirection))
}

/** Maximum number of values for a loop variable. */
const maxValues = 16

/**
 * Returns the values of a loop variable, or undefined if a value is known only at run time, if there are no values or
 * too many, or if the loop is inside another loop whose values are known.
 */
function loopValues(walk: Walk, words: readonly ShellNode[]): Binding[] | undefined {
  // Nested loops are not analyzed for each value, because the number of analyzed commands would multiply.
  if (walk.bindings.size > 0) return undefined
  const values = words.map((word) => valuesOf(walk, word))
  if (values.length === 0 || values.includes(undefined)) return undefined
  const all = values.flatMap((each) => each ?? [])
  return all.length <= maxValues ? all : undefined
}

function valuesOf(walk: Walk, node: ShellNode): Binding[] | undefined {
  const source = walk.source(node)
  const [, first, last] =
    /^\{(\d+)\.\.(\d+)\}$/.exec(source) ?? /^\$\(seq (?:(\d+) )?(\d+)\)$/.exec(source) ?? []
  if (last === undefined) {
    const binding = walk.binding(node)
    return binding && [binding]
  }
  // Some shells keep leading zeros.
  if (![first ?? "1", last].every((text) => /^(?:0|[1-9]\d{0,3})$/.test(text))) return undefined
  const [from, to] = [Number(first ?? 1), Number(last)]
  if (from > to || to - from >= maxValues) return undefined
  return Array.from({ length: to - from + 1 }, (_, index) => {
    const text = `${from + index}`
    return { text, mask: quoted.repeat(text.length) }
  })
}

function changesVariables({ opaque, argv: [program] }: PlannedCommand): boolean {
  return opaque !== undefined || typeof findProgram(program?.text ?? "")?.builtin === "string"
}

function keyOf({ argv, directories, assignments, input, wrapper }: PlannedCommand): string {
  return JSON.stringify([
    argv.map(({ text, span }) => [text, span]),
    directories,
    assignments,
    input && keyOf(input),
    wrapper && keyOf(wrapper),
  ])
}

/**
 * Moves a redirection to the last command of a list. The grammar attaches the redirection to the whole list, but in a
 * shell the redirection belongs to the last command.
 */
function moveToLast(body: ShellNode, redirected: ShellNode): ShellNode {
  const at = body.children.findLastIndex((child) => child.named && child.type !== "comment")
  const last = body.children[at]
  if (!last) return { ...body, type: "ERROR" }
  const rest = redirected.children.filter((child) => child !== body)
  return { ...body, children: body.children.with(at, { ...redirected, children: [last, ...rest] }) }
}

const endsInCommand = new Set(["list", "pipeline", "negated_command"])

function statementsOf(nodes: readonly ShellNode[]): ShellNode[] {
  return nodes.filter((node) => node.named && node.type !== "comment")
}

function reasonFor(type: string): string {
  if (type === "function_definition") return "it defines a function that may replace a program"
  if (type === "ERROR" || type === "MISSING") return "its syntax cannot be parsed"
  return `${type.replaceAll("_", " ")} cannot be parsed`
}

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
