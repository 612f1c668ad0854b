import * as z from "zod"
import { showName } from "../files/show-name.ts"
import { define, type Info } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, resolvePath } from "../util/paths.ts"
import { defaultSearchEngine } from "./search/default-search-engine.ts"
import { anchorGlob, compileGlob } from "./search/glob-pattern.ts"
import { newestFirst } from "./search/newest-first.ts"
import { type SearchEngine, searchRoot } from "./search/search-engine.ts"

const maxPaths = 100

const parameters = z.lazy(() =>
  z.object({
    pattern: z.string().min(1).describe("Glob, such as src/**/*.ts or *.{js,mjs}"),
    path: z.string().min(1).optional().describe("Directory to search (default: the working directory)"),
  }),
)

/** Finds files by name. */
export const globTool = createGlobTool(defaultSearchEngine)

/** Creates a glob tool that uses the given search engine. */
export function createGlobTool(engine: SearchEngine): Info<typeof parameters> {
  return define("glob", {
    description: readText(new URL("./glob.md", import.meta.url)),
    parameters,
    access: "read",
    async execute(args, ctx) {
      const { directory: path, glob } = anchorGlob(args.pattern, resolvePath(args.path ?? ".", ctx.directory))
      await ctx.ask({
        permission: "glob",
        patterns: [args.pattern],
        always: ["*"],
        paths: [path],
        metadata: { pattern: args.pattern, path },
      })

      const root = await searchRoot(path)
      let unreadable = false
      const files = engine.files({
        root,
        accepts: compileGlob(glob),
        signal: ctx.abort,
        onUnreadable: () => {
          unreadable = true
        },
      })
      const { paths, total } = await newestFirst(files, maxPaths)

      const lines = paths.map((file) => showName(displayPath(file, ctx.directory)))
      if (total === 0) lines.push("No files found")
      const notes: string[] = []
      if (total > paths.length) {
        notes.push(
          `(${paths.length} of ${total} files, newest first. To see other files, use a narrower pattern or path.)`,
        )
      }
      if (unreadable) notes.push("(Some directories could not be read.)")
      return {
        title: showName(displayPath(path, ctx.worktree)),
        output: [...lines, ...(notes.length > 0 ? ["", ...notes] : [])].join("\n"),
        metadata: { count: total, truncated: total > paths.length },
      }
    },
  })
}
