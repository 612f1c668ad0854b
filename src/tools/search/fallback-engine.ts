import { basename, join } from "node:path"
import vm from "node:vm"
import { fileKind, sampleBytes } from "../../files/file-kind.ts"
import { createLineSplitter, cutText } from "../../files/line-splitter.ts"
import { type OpenFile, openFile, readChunks, readStart } from "../../files/open-file.ts"
import { walk } from "../../files/walk.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { own } from "../../util/json.ts"
import { realPath } from "../../util/paths.ts"
import {
  assertSingleLine,
  type FileMatches,
  type FileQuery,
  InvalidPatternError,
  type SearchEngine,
  type TextQuery,
} from "./search-engine.ts"

/** Maximum number of characters searched per line. */
const maxSearchedLength = 10_000

/**
 * Creates an engine that searches in this process. This engine is slower than ripgrep and uses JavaScript regular
 * expressions.
 */
export function createFallbackEngine(): SearchEngine {
  return {
    files,
    async *search(query) {
      const match = createLineMatcher(query.pattern)
      for await (const path of files(query)) {
        const found = await searchFile(path, match, query)
        if (found.count > 0) yield found
      }
    },
  }
}

async function* files(query: FileQuery): AsyncGenerator<string> {
  throwIfAborted(query.signal)
  const { root } = query
  if (root.kind === "file") {
    if (query.accepts(basename(root.path))) yield root.path
    return
  }
  for await (const { path, kind } of walk(root.path, query)) {
    if (kind === "file" && query.accepts(path)) yield join(root.path, path)
  }
}

async function searchFile(
  path: string,
  match: (lines: readonly string[]) => number[],
  query: TextQuery,
): Promise<FileMatches> {
  const found: FileMatches = { path, lines: [], count: 0 }
  const handle = await openIfPossible(path, query)
  if (!handle) return found
  try {
    const kind = fileKind(path, readStart(handle, sampleBytes))
    if (kind.kind !== "text") return found

    let batch: string[] = []
    let first = 1
    const splitter = createLineSplitter(maxSearchedLength, (line) => batch.push(line))
    const flush = () => {
      for (const index of match(batch)) {
        if (found.count >= query.maxCount) return
        found.count += 1
        const text = cutText(batch[index] ?? "", query.maxLineLength)
        if (found.lines.length < query.maxLines) found.lines.push({ line: first + index, text })
      }
      first += batch.length
      batch = []
    }

    const decoder = new TextDecoder(kind.encoding)
    for await (const chunk of readChunks(handle, query.signal)) {
      if (kind.encoding === "utf-8" && chunk.includes(0)) return { path, lines: [], count: 0 }
      splitter.push(decoder.decode(chunk, { stream: true }))
      flush()
      if (found.count >= query.maxCount) return found
    }
    splitter.push(decoder.decode())
    splitter.end()
    flush()
    return found
  } finally {
    handle.close()
  }
}

/** Opens a file. Returns undefined if the file is deleted or unreadable, so that the search continues. */
async function openIfPossible(path: string, query: TextQuery): Promise<OpenFile | undefined> {
  try {
    return await openFile(path, realPath(path))
  } catch (error) {
    if (!TackleError.isInstance(error)) throw error
    query.onUnreadable()
    return undefined
  }
}

/** Thrown if matching a batch of lines takes too long. */
class SlowPatternError extends TackleError {
  constructor(pattern: string) {
    super(`The pattern takes too long to match: ${pattern}\nAvoid nested repetition such as (a+)+.`, {
      code: "search.slow-pattern",
      recoverable: true,
    })
  }
}

/** Time limit for a batch of lines, in milliseconds. A reasonable pattern needs less than 1 ms. */
const batchTimeout = 2000

/** POSIX character classes, which other regular expression dialects write as `[[:name:]]`. */
const namedClasses: Record<string, string> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  blank: " \\t",
  cntrl: "\\x00-\\x1f\\x7f",
  digit: "0-9",
  lower: "a-z",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\s",
  upper: "A-Z",
  word: "\\w",
  xdigit: "A-Fa-f0-9",
}

/**
 * Compiles a pattern to a function that returns the indexes of matching lines. Supports JavaScript syntax and, from
 * other dialects, only leading flags such as `(?i)` and classes such as `[[:alpha:]]`. Throws {@link
 * InvalidPatternError} if the pattern is invalid. The returned function throws {@link SlowPatternError} after a time
 * limit, because a pattern could block the process forever.
 */
function createLineMatcher(pattern: string): (lines: readonly string[]) => number[] {
  const context = vm.createContext(
    Object.assign(Object.create(null), { lines: [], expression: compile(pattern) }),
  )
  // The script is a function with arguments, because access to globals of the context is slow.
  const script = new vm.Script(`((lines, expression) => {
    const hits = []
    for (let index = 0; index < lines.length; index++) if (expression.test(lines[index])) hits.push(index)
    return hits
  })(lines, expression)`)
  return (lines) => {
    if (lines.length === 0) return []
    context.lines = lines
    try {
      return script.runInContext(context, { timeout: batchTimeout })
    } catch (error) {
      if (systemCode(error) === "ERR_SCRIPT_EXECUTION_TIMEOUT") throw new SlowPatternError(pattern)
      throw error
    }
  }
}

function compile(pattern: string): RegExp {
  assertSingleLine(pattern)
  const [, inline = "", rest = ""] = /^(?:\(\?([ims]+)\))?(.*)$/s.exec(pattern) ?? []
  const flags = [...new Set(inline)].join("")
  const source = rest.replace(/\[:(\w+):\]/g, (whole, name: string) => own(namedClasses, name) ?? whole)
  try {
    return tried(new RegExp(source, `${flags}u`))
  } catch {
    // Without Unicode mode, unnecessary backslashes are allowed, as in other dialects.
    return compileLoosely(pattern, source, flags)
  }
}

function compileLoosely(pattern: string, source: string, flags: string): RegExp {
  try {
    return tried(new RegExp(source, flags))
  } catch (error) {
    throw new InvalidPatternError(pattern, errorMessage(error))
  }
}

/** Runs the expression once, because an expression that is too large throws only when it runs. */
function tried(expression: RegExp): RegExp {
  expression.test("")
  return expression
}
