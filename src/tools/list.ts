import * as z from "zod"
import { NotDirectoryError } from "../files/file-errors.ts"
import { heavyDirectories } from "../files/ignore-rules.ts"
import { statPath } from "../files/open-file.ts"
import { showName } from "../files/show-name.ts"
import { type WalkEntry, walk } from "../files/walk.ts"
import { define } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, resolvePath } from "../util/paths.ts"
import { compileGlob } from "./search/glob-pattern.ts"
import { renderTree } from "./search/render-tree.ts"

/** Entries that are shown. */
const maxShown = 100

/** Entries that are looked at, to say how many are not shown. */
const maxCounted = 10_000

const parameters = z.lazy(() =>
  z.object({
    path: z.string().min(1).optional().describe("Directory (default: the working directory)"),
    ignore: z.array(z.string().min(1)).optional().describe("Globs of further entries to leave out"),
  }),
)

/** Shows a directory tree. */
export const listTool = define("list", {
  description: readText(new URL("./list.md", import.meta.url)),
  parameters,
  access: "read",
  async execute(args, ctx) {
    const path = resolvePath(args.path ?? ".", ctx.directory)
    await ctx.ask({ permission: "list", patterns: [path], always: ["*"], paths: [path], metadata: { path } })

    const found = await statPath(path, "Path")
    if (!found.isDirectory()) throw new NotDirectoryError(showName(path))
    const entries: WalkEntry[] = []
    const ignored = (args.ignore ?? []).map(compileGlob)
    let unreadable = false
    let complete = true
    const all = walk(path, {
      skips: (entry, directory) => leftOut(entry, directory) || ignored.some((matches) => matches(entry)),
      signal: ctx.abort,
      onUnreadable: () => {
        unreadable = true
      },
    })
    for await (const entry of all) {
      if (entries.length === maxCounted) {
        complete = false
        break
      }
      entries.push(entry)
    }

    const notes: string[] = []
    const total = complete ? `${entries.length}` : `more than ${maxCounted}`
    if (entries.length > maxShown) {
      notes.push(`(${maxShown} of ${total} entries. To see others list a subdirectory.)`)
    }
    if (unreadable) notes.push("(Some directories could not be read.)")
    const tree =
      entries.length === 0 ? "  (empty)" : await renderTree(path, entries.slice(0, maxShown), entries)
    return {
      title: showName(displayPath(path, ctx.worktree)),
      output: [showName(`${path}/`), tree, ...notes].join("\n"),
      metadata: { count: entries.length, truncated: entries.length > maxShown },
    }
  },
})

function leftOut(path: string, directory: boolean): boolean {
  return directory && heavyDirectories.has(path.slice(path.lastIndexOf("/") + 1))
}
