/** A request that the offline model understands. */
export type OfflineRequest =
  | { kind: "list"; path: string }
  | { kind: "glob"; pattern: string; path: string }
  | { kind: "read"; path: string }
  | { kind: "search"; text: string; path: string }
  | { kind: "replace"; from: string; to: string; path: string }
  | { kind: "write"; path: string; content: string }
  | { kind: "run"; command: string }
  | { kind: "unknown"; text: string }

/**
 * Splits a message into requests at line breaks and list items, and at a comma, the end of a sentence, "and" or "then"
 * if a verb follows.
 */
export function parseRequests(message: string): OfflineRequest[] {
  const requests: OfflineRequest[] = []
  let lastPath = "."
  for (const clause of splitClauses(message)) {
    const request = parseClause(clause, lastPath)
    if (request.kind === "read" || request.kind === "replace" || request.kind === "write") {
      lastPath = request.path
    }
    requests.push(request)
  }
  return requests
}

const verbs =
  "list|ls|show|display|read|open|print|cat|view|find|search|grep|look|replace|change|run|execute|create|write|put|check|what|which"
const quoted = "```[\\s\\S]*?```|`[^`]*`|\"[^\"]*\"|(?<![A-Za-z])'[^']*'"

/** Matches quoted text or a boundary between requests. */
const boundary = new RegExp(
  `(${quoted})|\\n+\\s*(?:[-*]|\\d+[.)])?\\s*|(?:\\s*[,.])?\\s+(?:and\\s+|then\\s+|after that,?\\s+|finally,?\\s+)*(?=(?:please\\s+)?(?:${verbs})\\b)`,
  "gi",
)

/** Matches a boundary that is more than a space, since a space alone does not separate requests: `run ls list`. */
const joined = /[,.\n]|\b(and|then|after that|finally)\b/i

/** Matches the number or dash of the first list item. The marks of later items are part of a boundary. */
const listMark = /^\s*(?:[-*]|\d+[.)])\s+/

function splitClauses(text: string): string[] {
  const message = text.replace(listMark, "")
  const clauses: string[] = []
  let start = 0
  for (const match of message.matchAll(boundary)) {
    if (match[1] !== undefined || !joined.test(match[0])) continue
    clauses.push(message.slice(start, match.index))
    start = match.index + match[0].length
  }
  clauses.push(message.slice(start))
  return clauses.map(tidy).filter((clause) => clause !== "")
}

const politeness =
  /^(?:(?:(?:hi|hello|please|now|also|first|next|finally|then|and)\b,?|(?:can|could|would|will) you\b|i (?:want|would like) you to\b|let'?s)\s*)+/i

function tidy(clause: string): string {
  return clause
    .trim()
    .replace(politeness, "")
    .replace(/\s+please$/i, "")
    .replace(/(?<=[\w`"'*)])[,;.!?]+$/, "")
}

type Groups = Record<string, string | undefined>

interface Rule {
  form: RegExp
  make(groups: Groups, path: (text: string | undefined) => string): OfflineRequest
}

const word = "(?:`[^`]+`|\"[^\"]+\"|'[^']+'|\\S+)"
const anything = "(?:```[\\s\\S]+```|`[^`]+`|\"[^\"]*\"|'[^']*'|[\\s\\S]+?)"
const inPath = `(?:\\s+(?:in|of|under|inside|within|from|at)\\s+(?<path>the (?:current|working|this) (?:directory|folder|project)|this (?:directory|folder|project)|${word}))?`

function rule(form: string, make: Rule["make"]): Rule {
  return { form: new RegExp(`^${form}$`, "i"), make }
}

/** Rules in order of precedence. The first rule that matches applies. */
const rules: readonly Rule[] = [
  rule(
    `(?:find|list|show|search for|look for)(?: me)?(?: all)?(?: the)? files? (?:named|called|matching|like|ending (?:in|with)) (?<pattern>${word})${inPath}`,
    ({ pattern, path }, resolve) => ({
      kind: "glob",
      pattern: asPattern(unquote(pattern)),
      path: resolve(path),
    }),
  ),
  rule(
    `(?:find|list|show|search for)(?: me)?(?: all)?(?: the)? (?<pattern>${word})(?: files)?${inPath}`,
    ({ pattern, path }, resolve) => {
      const glob = unquote(pattern)
      return /^\S*\*\S*$/.test(glob)
        ? { kind: "glob", pattern: glob, path: resolve(path) }
        : { kind: "unknown", text: "" }
    },
  ),
  rule(
    `(?:(?:list|show|display)(?: me)?|what are|which are)(?: all)?(?: of)?(?: the)? (?:files|file names|entries|director(?:y|ies)|folders?)(?: and (?:files|folders|directories))?(?: (?:are )?(?:here|there))?${inPath}`,
    ({ path }, resolve) => ({ kind: "list", path: resolve(path) }),
  ),
  rule(
    `(?:what|which)(?:'s| is| files are| files do you see| files exist)(?: there| here)?${inPath}`,
    ({ path }, resolve) => ({ kind: "list", path: resolve(path) }),
  ),
  rule(`(?:list|ls)(?: (?<path>${word}))?`, ({ path }, resolve) => ({ kind: "list", path: resolve(path) })),
  rule(
    `(?:replace|change) (?:all )?(?<from>${anything}) (?:with|by|to|into) (?<to>${anything}) in (?:the )?(?:file )?(?<path>${word})`,
    ({ from, to, path }, resolve) => ({
      kind: "replace",
      from: unquote(from),
      to: unquote(to),
      path: resolve(path),
    }),
  ),
  rule(
    `create (?:an |the )?(?:new )?empty file (?:called |named )?(?<path>${word})`,
    ({ path }, resolve) => ({
      kind: "write",
      path: resolve(path),
      content: "",
    }),
  ),
  rule(
    `(?:create|write)(?: an?| the)?(?: new)?(?: file)?(?: called| named)? (?<path>${word}) (?:with|containing)(?: the)?(?: (?:text|contents?|line))?:? (?<content>${anything})`,
    ({ path, content }, resolve) => ({
      kind: "write",
      path: resolve(path),
      content: asContent(unquote(content)),
    }),
  ),
  rule(
    `(?:write|put) (?<content>${anything}) (?:to|into|in) (?:the |a )?(?:new )?(?:file )?(?<path>${word})`,
    ({ path, content }, resolve) => ({
      kind: "write",
      path: resolve(path),
      content: asContent(unquote(content)),
    }),
  ),
  rule(`check (?:if|whether|that) (?<program>[\\w.+-]+) is installed`, ({ program }) => ({
    kind: "run",
    command: `${program} --version`,
  })),
  rule(`(?:run|execute)(?: the)?(?: command)?:? (?<command>${anything})`, ({ command }) => ({
    kind: "run",
    command: unquote(command),
  })),
  rule(
    `(?:find|search(?: for)?|grep(?: for)?|look for)(?: all)?(?: the)?(?: (?:text|word|string|lines? (?:with|containing)|occurrences? of|uses? of))? (?<text>${anything})${inPath}`,
    ({ text, path }, resolve) => ({ kind: "search", text: unquote(text), path: resolve(path) }),
  ),
  rule(
    `(?:read|open|print|cat|display|view|show|look at)(?: me)?(?: the)?(?: (?:file|contents? of(?: the)?(?: file)?))? (?<path>${word})(?: file)?`,
    ({ path }, resolve) => ({ kind: "read", path: resolve(path) }),
  ),
]

function parseClause(clause: string, lastPath: string): OfflineRequest {
  for (const { form, make } of rules) {
    const match = form.exec(clause)
    if (match === null) continue
    const request = make(match.groups ?? {}, (text) => asPath(text, lastPath))
    if (request.kind !== "unknown") return request
  }
  return { kind: "unknown", text: clause }
}

function asPath(text: string | undefined, lastPath: string): string {
  const path = unquote(text)
  if (/^(it|that file)$/i.test(path)) return lastPath
  if (path === "" || /^(here|(the|this|current|working|project)( .*)?)$/i.test(path)) return "."
  return path
}

/** Converts an extension such as `.ts` to a glob pattern. */
function asPattern(text: string): string {
  return /^\.\w+$/.test(text) ? `**/*${text}` : text
}

/** Adds a final line break to content that is not empty. */
function asContent(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`
}

function unquote(text = ""): string {
  const fenced = /^```\w*\n?([\s\S]*?)```$/.exec(text)
  if (fenced) return fenced[1] ?? ""
  return /^(["'`])([\s\S]*)\1$/.exec(text)?.[2] ?? text
}
