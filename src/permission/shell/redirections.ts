import type { ShellNode } from "./parse.ts"
import { type Directories, redirectTypes, type Walk, wordTypes } from "./shell-plan.ts"

/**
 * Records the file that a redirection opens. Returns the words after the target. The grammar includes these words in
 * the redirection, but a shell passes them to the command.
 */
export function readRedirection(walk: Walk, node: ShellNode, at: Directories): ShellNode[] {
  if (node.type === "heredoc_redirect") return readHereDocument(walk, node, at)
  const words = node.children.filter((child) => child.named && child.type !== "file_descriptor")
  const operator = node.children.find((child) => !child.named)?.type ?? ""
  if (operator === ">&-" || operator === "<&-") return words
  const [target, ...extra] = words
  if (!target) {
    walk.problem("a redirection has no target")
    return []
  }
  const word = walk.readWord(target, at)
  if (word.problem !== undefined) walk.problem(word.problem)
  // `{name}>file` stores a file descriptor in a variable.
  if (walk.between(node.start - 1, node.start) === "}") walk.problem("a redirection sets a variable")
  // Some shells read `&>` as `&`, and read the words after the target as a separate command.
  if (operator.startsWith("&") && !endsCommand.test(walk.between(target.end, Number.POSITIVE_INFINITY))) {
    walk.problem("shells differ in how they interpret one of its redirections")
  }
  if (operator === "<<<") {
    walk.found.inputs.push({ text: word.text, unknown: word.dynamic && /\$[{\w]/.test(walk.source(target)) })
    return extra
  }
  if (operator.startsWith("<")) walk.found.inputs.push({ text: "", unknown: false })
  // These paths are not files: bash opens a connection to a host.
  if (/^\/dev\/(?:tcp|udp)\//.test(word.text)) walk.problem("a redirection opens a connection")

  const duplicates = /^(?:\d+-?|-)$/.test(word.text) && !word.dynamic
  if (operator === "<") walk.found.files.push({ kind: "read", target: word, directories: at })
  else if (writing.has(operator) || (operator === ">&" && !duplicates)) {
    walk.found.files.push({ kind: "write", target: word, directories: at })
  } else if (!duplicates || !duplicating.has(operator))
    walk.problem(`the redirection ${operator} cannot be parsed`)
  return extra
}

/**
 * A statement after the delimiter of a here-document. `piped` means that the statement receives the output of the
 * previous command.
 */
interface LaterStatement {
  statement: ShellNode
  piped: boolean
}

/**
 * Returns the statements that follow the delimiter of a here-document on the same line. In the syntax tree, these
 * statements are children of the here-document.
 */
export function statementsAfterMark(node: ShellNode): LaterStatement[] {
  if (node.type !== "heredoc_redirect") return []
  const start = node.children.findIndex((child) => child.type === "heredoc_start")
  const body = node.children.findIndex((child) => child.type === "heredoc_body")
  return node.children
    .slice(start + 1, body)
    .filter((child) => child.named && !redirectTypes.has(child.type) && !wordTypes.has(child.type))
    .flatMap((child): LaterStatement[] => {
      const tail = child.type === "pipeline" && !child.children[0]?.named
      if (!tail) return [{ statement: child, piped: false }]
      return child.children.filter((part) => part.named).map((statement) => ({ statement, piped: true }))
    })
}

const endsCommand = /^[ \t]*(?:$|[\n;&|)])/
const writing = new Set([">", ">>", ">|", "&>", "&>>"])
const duplicating = new Set([">&", "<&"])

/** Checks that the parser ends a here-document where a shell ends it, and that its content cannot run commands. */
function readHereDocument(walk: Walk, node: ShellNode, at: Directories): ShellNode[] {
  const child = (type: string) => node.children.find((entry) => entry.type === type)
  const [start, body, end] = [child("heredoc_start"), child("heredoc_body"), child("heredoc_end")]
  if (!start || !body || !end) {
    walk.problem("a here-document cannot be parsed")
    return []
  }
  const mark = walk.source(start)
  const name = markName(mark)
  const after = walk.between(start.end, end.start)
  const content = after.slice(after.indexOf("\n") + 1)
  const variables = name === mark ? [...content.matchAll(/\$(\w+)/g)] : []
  const unknown = variables.some(([, each = ""]) => !knownVariables.has(each) && !walk.bindings.has(each))
  walk.found.inputs.push({ text: content, unknown })
  const lines = content.split("\n").slice(0, -1)
  const endsEarlier = lines.some((line) => line.replace(/^\t+/, "") === name)
  if (name === undefined || walk.source(end).trim() !== name || endsEarlier) {
    walk.problem("the end of a here-document is unclear")
  }
  if (name === mark) {
    walk.substitutionsIn(body, at)
    // The grammar does not find all commands in this content.
    if (/`|\$[^\w\s]|\\/.test(content)) walk.problem("a here-document runs commands")
  }
  const redirects = node.children.filter((entry) => redirectTypes.has(entry.type))
  const words = node.children.filter((entry) => entry.named && wordTypes.has(entry.type))
  return [...words, ...redirects.flatMap((entry) => readRedirection(walk, entry, at))]
}

/** Variables whose values are no secret. */
const knownVariables: ReadonlySet<string> = new Set(["HOME", "PWD"])

/** Returns the delimiter without quotes, or undefined for delimiters that shells interpret differently. */
function markName(mark: string): string | undefined {
  const match = /^(?:'([\w.-]+)'|"([\w.-]+)"|\\?([\w.-]+))$/.exec(mark)
  return match?.slice(1).find((part) => part !== undefined)
}
