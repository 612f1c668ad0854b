import type { CallOutcome } from "../call/call.ts"
import type { FileTracker } from "../files/file-tracker.ts"
import type { ToolListing } from "../registry/registry.ts"
import type { Todo } from "../schema/todo.ts"
import type { ToolStateRunning } from "../schema/tool-state.ts"
import type { AskForm, Sample, TodoCapability } from "../tool/context.ts"
import type { Info } from "../tool/tool.ts"
import { AbortedError, orAbort } from "../util/abort.ts"

/** What a caller may do, and whether a person is with them. */
export interface CallerOptions {
  /** Whose rules and tools. Default: the engine's default agent. */
  agent?: string
  /** Ids of the tools that are offered, of those that the agent has. Default: all. */
  tools?: readonly string[]
  /** False: nobody there answers questions, so the tools that ask are not offered. */
  questions?: boolean
}

/** A call by a caller. */
export interface CallerCall {
  tool: string
  /** JSON text. */
  input: string
  /** Names the call where it, or a call that it makes, asks something: `tool.messageID` of the request. */
  messageID: string
  signal: AbortSignal
  /** What a running call tells of itself, at most ten times a second. */
  onProgress(state: ToolStateRunning): void
  /**
   * A tool of the host's own that runs in place of those of the engine. No model is offered it; it asks for leave by
   * itself, as built-in ones do.
   */
  by?: Info
  /** Shows forms of MCP servers to the person, as they are. */
  form?: AskForm
  /** Asks the model of whoever makes the call, for MCP servers. */
  sample?: Sample
}

/**
 * Somebody who makes calls over a time without a stored session, such as the client of a server: what they read, their
 * to-do list, their jobs and what was allowed them "in this session" hold until they are closed.
 */
export interface Caller {
  /** What their requests and questions have as `sessionID`. */
  readonly id: string
  /** Every tool, with the reason where it is not offered to them. */
  tools(signal: AbortSignal): Promise<ToolListing[]>
  /** Rejects with `AbortedError` where the signal fires before the call has begun. */
  call(call: CallerCall): Promise<CallOutcome>
  /** Ends their calls and jobs, and takes back what was allowed them. */
  close(): Promise<void>
}

/** What a caller keeps from call to call. */
export interface Standing {
  id: string
  files: FileTracker
  todo?: TodoCapability
  questions?: boolean
  /** Ids. Absent: all tools of the agent. */
  chosen?: ReadonlySet<string>
}

/** A caller over the engine's own way to list and call. `forget` drops what is kept for them elsewhere. */
export function createCaller({
  standing,
  list,
  call,
  forget,
}: {
  standing: Standing
  list(): Promise<ToolListing[]>
  call(call: CallerCall): Promise<CallOutcome>
  forget(): Promise<void>
}): Caller {
  const closing = new AbortController()
  const underWay = new Set<Promise<unknown>>()

  return {
    id: standing.id,
    async tools(signal) {
      const listed = await orAbort(list(), signal)
      return listed.map((tool) => (isChosen(standing, tool) ? tool : { ...tool, ...notChosen }))
    },
    async call(given) {
      const work = call({ ...given, signal: AbortSignal.any([given.signal, closing.signal]) })
      underWay.add(work)
      try {
        return await work
      } finally {
        underWay.delete(work)
      }
    },
    async close() {
      closing.abort(new AbortedError("Whoever made the call is gone."))
      await Promise.allSettled(underWay)
      await forget()
    },
  }
}

/** Those of the tools that are for the caller. */
export function chosenOf<T extends { id: string }>(standing: Standing, tools: readonly T[]): T[] {
  return tools.filter((tool) => isChosen(standing, tool))
}

/** A to-do list that lasts as long as its caller. */
export function createTodoList(): TodoCapability {
  let todos: Todo[] = []
  return {
    read: async () => todos,
    async write(given) {
      todos = given
    },
  }
}

const notChosen = { offered: false, reason: "it is not among the tools that were chosen" }

function isChosen({ chosen }: Standing, { id }: { id: string }): boolean {
  return chosen?.has(id) ?? true
}
