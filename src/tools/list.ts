import { readlink } from "node:fs/promises"
import { join } from "node:path"
import * as z from "zod"
import { NotDirectoryError } from "../files/file-errors.ts"
import { heavyDirectories } from "../files/ignore-rules.ts"
import { statPath } from "../files/open-file.ts"
import { showName } from "../files/show-name.ts"
import { type WalkEntry, walk } from "../files/walk.ts"
import { define } from "../tool/tool.ts"
import { systemCode } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { displayPath, resolvePath } from "../util/paths.ts"
import { compileGlob } from "./search/glob-pattern.ts"

/** Maximum number of entries shown. */
const maxShown = 100

/** Maximum number of entries counted to report how many are not shown. */
const maxCounted = 10_000

const parameters = z.lazy(() =>
  z.object({
    path: z.string().min(1).optional().describe("Directory (default: the working directory)"),
    ignore: z.array(z.string().min(1)).optional().describe("Globs of additional entries to omit"),
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
      skips: (entry, directory) => isHeavy(entry, directory) || ignored.some((matches) => matches(entry)),
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
      notes.push(
        `(${maxShown} of ${total} entries. To see other entries, list a subdirectory, or read the directory that contains them.)`,
      )
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

function isHeavy(path: string, directory: boolean): boolean {
  return directory && heavyDirectories.has(path.slice(path.lastIndexOf("/") + 1))
}

/**
 * Renders `shown` as lines indented by depth. Adds a line to each shown directory with the number of its entries that
 * are in `all` but not in `shown`.
 */
async function renderTree(
  root: string,
  shown: readonly WalkEntry[],
  all: readonly WalkEntry[],
): Promise<string> {
  const children = Map.groupBy(shown, ({ parent }) => parent)
  const counts = new Map<string, number>()
  for (const { parent } of all) counts.set(parent, (counts.get(parent) ?? 0) + 1)

  async function lines(directory: string, indent: string): Promise<string[]> {
    const entries = children.get(directory) ?? []
    const result: string[] = []
    for (const entry of entries) {
      result.push(indent + (await label(root, entry)))
      if (entry.kind === "directory") result.push(...(await lines(entry.path, `${indent}  `)))
    }
    const hidden = (counts.get(directory) ?? 0) - entries.length
    if (hidden > 0) result.push(`${indent}… ${hidden} more`)
    return result
  }

  return (await lines("", "  ")).join("\n")
}

async function label(root: string, entry: WalkEntry): Promise<string> {
  if (entry.kind === "directory") return showName(`${entry.name}/`)
  if (entry.kind !== "link") return showName(entry.name)
  return `${showName(entry.name)} -> ${showName(await target(join(root, entry.path)))}`
}

/** Returns the target of a symlink, or `?` if it cannot be read. */
async function target(link: string): Promise<string> {
  try {
    return await readlink(link)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return "?"
  }
}
