import * as z from "zod"
import { isSecretFile } from "../files/file-kind.ts"
import { maxPageBytes } from "../files/read-page.ts"
import { showName } from "../files/show-name.ts"
import type { ToolContext } from "../tool/context.ts"
import { define, type Info } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, realPath, resolvePath } from "../util/paths.ts"
import { counted } from "../util/words.ts"
import { defaultSearchEngine } from "./search/default-search-engine.ts"
import { compileGlob, nameGlob } from "./search/glob-pattern.ts"
import { sortNewestFirst } from "./search/newest-first.ts"
import {
  type FileMatches,
  type SearchEngine,
  type SearchRoot,
  searchRoot,
  type TextQuery,
} from "./search/search-engine.ts"

/** Maximum number of lines shown, for all files together. */
const maxShownLines = 100

/** Maximum number of characters shown per line. */
const maxLineLength = 2000

/** Maximum number of matching lines counted, per file and in total. */
const maxFileCount = 10_000
const maxTotalCount = 100_000

/**
 * Maximum number of bytes of matching text to buffer until the newest files are known. When the buffer is full, the
 * search stops.
 */
const maxBufferBytes = 10 * 1024 * 1024

const parameters = z.lazy(() =>
  z.object({
    pattern: z.string().min(1).describe("Regular expression"),
    path: z.string().min(1).optional().describe("Directory or file (default: the working directory)"),
    include: z.string().min(1).optional().describe("Glob for files to search, such as *.ts"),
  }),
)

/** Searches file contents. */
export const grepTool = createGrepTool(defaultSearchEngine)

/** Creates a grep tool that uses the given search engine. */
export function createGrepTool(engine: SearchEngine): Info<typeof parameters> {
  return define("grep", {
    description: readText(new URL("./grep.md", import.meta.url)),
    parameters,
    access: "read",
    async execute(args, ctx) {
      const path = resolvePath(args.path ?? ".", ctx.directory)
      await ctx.ask({
        permission: "grep",
        patterns: [args.pattern],
        always: ["*"],
        paths: [path],
        metadata: { pattern: args.pattern, path, include: args.include },
      })

      const root = await searchRoot(path)
      if (root.kind === "file" && isSecretFile(realPath(path))) await askToRead(path, ctx)
      let unreadable = false
      const { files: found, complete } = await collect(
        engine.search({
          ...filesToSearch(root, args.include),
          pattern: args.pattern,
          root,
          maxLines: maxShownLines,
          maxCount: maxFileCount,
          maxLineLength,
          signal: ctx.abort,
          onUnreadable: () => {
            unreadable = true
          },
        }),
      )

      const { files, hidden } =
        root.kind === "file" ? { files: found, hidden: 0 } : await readable(found, ctx)
      const { output, shown, count } = await renderMatches(files, {
        directory: ctx.directory,
        maxLines: maxShownLines,
        complete,
      })
      return {
        title: showName(args.pattern),
        output: [output, ...notes({ unreadable, hidden })].join("\n\n"),
        metadata: { matches: count, files: files.length, truncated: shown < count || !complete },
      }
    },
  })
}

/**
 * Removes the files that may not be read without permission. `hidden` is the number of removed files for which
 * permission can be requested. Files that may not be read at all are not counted.
 */
async function readable(
  found: readonly FileMatches[],
  ctx: ToolContext,
): Promise<{ files: FileMatches[]; hidden: number }> {
  const files: FileMatches[] = []
  let hidden = 0
  for (const file of found) {
    const action = (await ctx.mayRead?.(file.path)) ?? "allow"
    if (action === "allow") files.push(file)
    else if (action === "ask") hidden += 1
  }
  return { files, hidden }
}

function notes({ unreadable, hidden }: { unreadable: boolean; hidden: number }): string[] {
  const notes: string[] = []
  if (unreadable) notes.push("(Some files could not be searched completely.)")
  if (hidden > 0) {
    notes.push(
      `(Omitted ${counted(hidden, "file")} with matches, because reading them requires permission. To request permission for a file, pass its path to read or grep.)`,
    )
  }
  return notes
}

/**
 * Requests the same permission as `read`, because a search must not show content that `read` would not show without
 * permission.
 */
async function askToRead(path: string, ctx: ToolContext): Promise<void> {
  await ctx.ask({ permission: "read", patterns: [path], always: ["*"], metadata: { filePath: path } })
}

/**
 * Selects the files to search. In a directory, silently excludes files that usually contain secrets, because reporting
 * even the number of matches would let the model guess their content.
 */
function filesToSearch(
  root: SearchRoot,
  include: string | undefined,
): Pick<TextQuery, "accepts" | "nameGlob"> {
  if (root.kind === "file") return { accepts: () => true }
  if (include === undefined) return { accepts: (path) => !isSecretFile(path) }
  const wanted = compileGlob(include)
  return { accepts: (path) => wanted(path) && !isSecretFile(path), nameGlob: nameGlob(include) }
}

/** Collects results until a limit is reached. */
async function collect(
  found: AsyncIterable<FileMatches>,
): Promise<{ files: FileMatches[]; complete: boolean }> {
  const files: FileMatches[] = []
  let bytes = 0
  let count = 0
  let complete = true
  for await (const file of found) {
    files.push(file)
    count += file.count
    for (const { text } of file.lines) bytes += Buffer.byteLength(text)
    if (file.count >= maxFileCount) complete = false
    if (bytes > maxBufferBytes || count > maxTotalCount) return { files, complete: false }
  }
  return { files, complete }
}

/** Output for the model, and the numbers of matching lines shown and found. */
interface RenderedMatches {
  output: string
  shown: number
  count: number
}

/**
 * Groups matches by file, newest first, up to `maxLines` lines and {@link maxPageBytes} bytes. If `complete` is false,
 * the totals are lower bounds.
 */
async function renderMatches(
  files: readonly FileMatches[],
  options: { directory: string; maxLines: number; complete: boolean },
): Promise<RenderedMatches> {
  const count = files.reduce((sum, file) => sum + file.count, 0)
  if (count === 0) return { output: "No matches found", shown: 0, count }

  const groups: string[] = []
  let shown = 0
  let bytes = 0
  for (const file of await sortNewestFirst(files)) {
    const group = [showName(displayPath(file.path, options.directory))]
    for (const { line, text } of file.lines) {
      const rendered = `  ${line}: ${text}`
      bytes += Buffer.byteLength(rendered) + 1
      if (shown >= options.maxLines || bytes > maxPageBytes) break
      group.push(rendered)
      shown += 1
    }
    if (group.length === 1) break
    groups.push(group.join("\n"))
  }
  return {
    output: `${heading(files.length, count, shown, options.complete)}\n\n${groups.join("\n\n")}`,
    shown,
    count,
  }
}

function heading(files: number, count: number, shown: number, complete: boolean): string {
  const where = counted(files, "file")
  if (shown === count && complete) return `${counted(count, "match", "matches")} in ${where}`
  const total = complete ? `${count} matches in ${where}` : `more than ${count} matches`
  return `Showing ${shown} of ${total}, newest files first. To see other matches, narrow the pattern, path or include.`
}
