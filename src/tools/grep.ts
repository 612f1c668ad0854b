import * as z from "zod"
import { isSecretFile } from "../files/file-kind.ts"
import { showName } from "../files/show-name.ts"
import type { ToolContext } from "../tool/context.ts"
import { define, type Info } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { realPath, resolvePath } from "../util/paths.ts"
import { defaultSearchEngine } from "./search/default-search-engine.ts"
import { compileGlob, nameGlob } from "./search/glob-pattern.ts"
import { renderMatches } from "./search/render-matches.ts"
import type { FileMatches, SearchEngine, SearchRoot, TextQuery } from "./search/search-engine.ts"
import { searchRoot } from "./search/search-root.ts"

/** Lines that are shown, of all files together. */
const maxShownLines = 100

/** Characters of a line that are shown. */
const maxLineLength = 2000

/** Matching lines that are counted: in one file, and in all. A pattern with more hits than this needs narrowing. */
const maxFileCount = 10_000
const maxTotalCount = 100_000

/** 10 MB of text are kept at most until the newest are known. */
const maxBufferBytes = 10 * 1024 * 1024

const parameters = z.lazy(() =>
  z.object({
    pattern: z.string().min(1).describe("Regular expression"),
    path: z.string().min(1).optional().describe("Directory or file (default: the working directory)"),
    include: z.string().min(1).optional().describe("Glob of the files to search, such as *.ts"),
  }),
)

/** Finds lines by regular expression. */
export const grepTool = createGrepTool(defaultSearchEngine)

/** The tool over an engine of one's own. */
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

      const { files, withheld } =
        root.kind === "file" ? { files: found, withheld: 0 } : await readable(found, ctx)
      const { output, shown, count } = await renderMatches(files, {
        directory: ctx.directory,
        maxLines: maxShownLines,
        complete,
      })
      return {
        title: showName(args.pattern),
        output: [output, ...notes({ unreadable, withheld })].join("\n\n"),
        metadata: { matches: count, files: files.length, truncated: shown < count || !complete },
      }
    },
  })
}

/** Without the files that a rule forbids to read, of which nothing is said, and those that a person would be asked for. */
async function readable(
  found: readonly FileMatches[],
  ctx: ToolContext,
): Promise<{ files: FileMatches[]; withheld: number }> {
  const files: FileMatches[] = []
  let withheld = 0
  for (const file of found) {
    const action = (await ctx.mayRead?.(file.path)) ?? "allow"
    if (action === "allow") files.push(file)
    else if (action === "ask") withheld += 1
  }
  return { files, withheld }
}

function notes({ unreadable, withheld }: { unreadable: boolean; withheld: number }): string[] {
  return [
    ...(unreadable ? ["(Some files could not be searched completely.)"] : []),
    ...(withheld > 0
      ? [
          `(Left out ${withheld} ${withheld === 1 ? "file" : "files"} with matches: reading needs permission. To request it, read or grep one by path.)`,
        ]
      : []),
  ]
}

/** A search must not show what `read` would ask for, so the one file that is named is asked for likewise. */
async function askToRead(path: string, ctx: ToolContext): Promise<void> {
  await ctx.ask({ permission: "read", patterns: [path], always: ["*"], metadata: { filePath: path } })
}

/**
 * Files that usually hold secrets are left out without a word: to say that one matched would let a search guess what
 * is in it.
 */
function filesToSearch(
  root: SearchRoot,
  include: string | undefined,
): Pick<TextQuery, "accepts" | "nameGlob"> {
  if (root.kind === "file") return { accepts: () => true }
  if (include === undefined) return { accepts: (path) => !isSecretFile(path) }
  const wanted = compileGlob(include)
  const query: Pick<TextQuery, "accepts" | "nameGlob"> = {
    accepts: (path) => wanted(path) && !isSecretFile(path),
  }
  const names = nameGlob(include)
  if (names !== undefined) query.nameGlob = names
  return query
}

/** Everything found, until there is too much of it. */
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
