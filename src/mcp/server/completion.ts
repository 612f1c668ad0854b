import { basename, dirname, join, resolve } from "node:path"
import type { Server } from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import { directoryEntries, isDirectory } from "../../util/file-system.ts"
import { isInside, realPath } from "../../util/paths.ts"
import type { OfferedTools } from "./offered-tools.ts"

/** The protocol allows no more in one answer. */
const mostValues = 100

/**
 * Answers `completion/complete`: what a command or an address takes is mostly a file, so the value is gone on with by
 * names in the work tree. Nothing is told to clients without the tool `list`, nor of directories that the rules let
 * nobody list unasked.
 */
export function offerCompletion(
  server: Server,
  { tackle, agent, tools }: { tackle: Tackle; agent: string | undefined; tools: Pick<OfferedTools, "has"> },
): void {
  server.setRequestHandler("completion/complete", async ({ params: { argument } }, { mcpReq }) => {
    const lists = await tools.has("list", mcpReq.signal)
    const values = lists ? await pathsFrom(argument.value, tackle, agent) : []
    const [shown, total] = [values.slice(0, mostValues), values.length]
    return { completion: { values: shown, total, hasMore: total > shown.length } }
  })
}

/** Paths in the work tree that begin with the text, spelled as it is; directories end in a slash. */
async function pathsFrom(text: string, tackle: Tackle, agent: string | undefined): Promise<string[]> {
  const start = text === "" || text.endsWith("/") ? text : dirname(text)
  const beginning = text.endsWith("/") ? "" : basename(text)
  const directory = resolve(tackle.directory, start)
  if (!isInside(directory, tackle.worktree) || !isDirectory(directory)) return []
  if (!(await mayList(directory, tackle, agent))) return []
  const written = text.slice(0, text.length - beginning.length)
  return directoryEntries(directory)
    .filter(({ name }) => name.startsWith(beginning) && (beginning !== "" || !name.startsWith(".")))
    .map((entry) => join(written, entry.name) + (entry.isDirectory() ? "/" : ""))
}

async function mayList(directory: string, tackle: Tackle, agent: string | undefined): Promise<boolean> {
  const { verdict } = await tackle.explain({
    permission: "list",
    patterns: [directory],
    paths: [realPath(directory)],
    ...(agent === undefined ? {} : { agent }),
  })
  return verdict === "allow"
}
