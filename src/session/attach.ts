import { readResourceID } from "../mcp/client/resources.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import type { PromptFile } from "./handle.ts"

/** What a prompt brings along. `name` is how the person wrote it. */
export type Attached =
  | { kind: "file" | "directory"; name: string; path: string }
  | { kind: "resource"; name: string; server: string; uri: string }

/** The call that shows it: what the model gets is just what the tool would give, with its checks, limits and marks. */
export function showCall(attached: Attached): { tool: string; input: Record<string, unknown> } {
  if (attached.kind === "resource")
    return { tool: readResourceID, input: { server: attached.server, uri: attached.uri } }
  const { kind, path } = attached
  return kind === "directory"
    ? { tool: "list", input: { path } }
    : { tool: "read", input: { filePath: path } }
}

/** What that call gave as files of a prompt, or why there is nothing. */
export function shownFiles(
  attached: Attached,
  state: ToolStateCompleted | ToolStateError,
): { files: PromptFile[] } | { problem: string } {
  if (state.status === "error") return { problem: state.error }
  const { kind, name } = attached
  if (state.attachments?.length) {
    return { files: state.attachments.map(({ mime, url, filename = name }) => ({ mime, url, filename })) }
  }
  const text =
    kind === "directory" ? `<directory path="${attached.path}">\n${state.output}\n</directory>` : state.output
  const url = `data:text/plain;base64,${Buffer.from(text).toString("base64")}`
  return { files: [{ mime: "text/plain", url, filename: name }] }
}
