import { newTurn } from "../call/call.ts"
import type { Step } from "../call/context.ts"
import { runCalls } from "../call/schedule.ts"
import type { Refusal } from "../event/events.ts"
import { readResourceID, resourceServers } from "../mcp/client/resources.ts"
import type { PromptFile } from "../schema/input.ts"
import type { ToolStateCompleted, ToolStateError } from "../schema/tool-state.ts"
import { newId } from "../util/id.ts"
import { findMentions } from "./mentions.ts"

/** Files and notes that the mentions in a prompt add to it. */
export interface MentionedFiles {
  files: PromptFile[]
  /** Notes for the model: why attachments failed, and which subagents the user mentions. */
  notes: string[]
  refused: Refusal[]
}

/** A file, directory or resource that a prompt mentions. `name` is the text that the user wrote. */
export type Attached =
  | { kind: "file" | "directory"; name: string; path: string }
  | { kind: "resource"; name: string; server: string; uri: string }

/**
 * Reads the files, directories and resources that the user mentions with `@`, using the tools and rules of the session.
 * Each read requires permission, like any tool call. A refused read becomes a note. `agents` are the subagents that
 * this session may start.
 */
export async function attachMentions(
  text: string,
  { active, messageID, offered }: Pick<Step, "active" | "messageID" | "offered">,
  agents: readonly string[],
): Promise<MentionedFiles> {
  const { directory, worktree } = active.run.session
  const servers = resourceServers(offered.get(readResourceID)?.schema)
  const mentions = text.includes("@") ? findMentions(text, { directory, worktree, agents, servers }) : []
  const result: MentionedFiles = { files: [], notes: [], refused: [] }
  const attached = mentions.filter((mention) => mention.kind !== "agent")
  for (const { kind, name } of mentions) {
    if (kind !== "agent") continue
    result.notes.push(
      `The user mentions the subagent ${name} (@${name}). Use the task tool to delegate that part of the work to this subagent.`,
    )
  }
  if (attached.length === 0) return result

  const turn = newTurn()
  const calls = attached.map((entry) => {
    const { tool, input } = callFor(entry)
    return { callID: newId("call"), tool, raw: JSON.stringify(input) }
  })
  const outcomes = await runCalls(calls, {
    active,
    messageID,
    offered,
    turn,
    extra: attachedByUser,
    report: async () => {},
  })
  attached.forEach((entry, index) => {
    const state = outcomes[index]?.state
    if (state) add(entry, attachedFiles(entry, state))
  })
  return { ...result, refused: turn.refused }

  function add({ name }: Attached, found: ReturnType<typeof attachedFiles>): void {
    if ("files" in found) result.files.push(...found.files)
    else result.notes.push(`@${name} was not attached: ${found.problem}`)
  }
}

/** Marks calls that read a file that the user mentions. */
export const attachedByUser = { bypassCwdCheck: true } as const

/** Returns the tool call that reads an attachment. The checks and limits of the tool apply. */
export function callFor(attached: Attached): { tool: string; input: Record<string, unknown> } {
  if (attached.kind === "resource")
    return { tool: readResourceID, input: { server: attached.server, uri: attached.uri } }
  const { kind, path } = attached
  return kind === "directory"
    ? { tool: "list", input: { path } }
    : { tool: "read", input: { filePath: path } }
}

/** Converts the result of the call that reads an attachment to prompt files. Returns the error if the call failed. */
export function attachedFiles(
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
