import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type { PromptFile } from "./handle.ts"

/** A file or directory that a prompt brings along. `name` is how the person wrote it. */
export interface Attached {
  kind: "file" | "directory"
  name: string
  path: string
}

/** The call that shows it: what the model gets is just what the tool would give, with its checks, limits and marks. */
export function showCall({ kind, path }: Attached): { tool: string; input: Record<string, unknown> } {
  return kind === "directory"
    ? { tool: "list", input: { path } }
    : { tool: "read", input: { filePath: path } }
}

/** What that call gave as files of a prompt, or why there is nothing. */
export function shownFiles(
  { kind, name, path }: Attached,
  state: ToolStateCompleted | ToolStateError,
): { files: PromptFile[] } | { problem: string } {
  if (state.status === "error") return { problem: state.error }
  if (state.attachments?.length) {
    return { files: state.attachments.map(({ mime, url, filename = name }) => ({ mime, url, filename })) }
  }
  const text =
    kind === "directory" ? `<directory path="${path}">\n${state.output}\n</directory>` : state.output
  const url = `data:text/plain;base64,${Buffer.from(text).toString("base64")}`
  return { files: [{ mime: "text/plain", url, filename: name }] }
}
