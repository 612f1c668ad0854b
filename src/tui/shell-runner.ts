import type { TackleApi } from "../client/api.ts"
import type { ToolPart } from "../schema/part.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import type { ToolState, ToolStateRunning } from "../schema/tool-state.ts"
import { newId } from "../util/id.ts"

/** Runs the user's shell commands. The same permission rules apply as for the model. */
export interface ShellRunner {
  readonly isRunning: boolean
  /** Runs a command, and resolves when it ends. Rejects if another command is running or the request fails. */
  run(command: string, agent: string | undefined): Promise<void>
  /** Stops the command. */
  stop(): void
}

/**
 * Creates a runner. `show` receives the call with its output so far, and finally with its result. `onRequests` receives
 * the command's permission requests that wait for the user.
 */
export function createShellRunner({
  api,
  show,
  onRequests,
}: {
  api: TackleApi
  show(call: ToolPart): void
  onRequests(requests: readonly PermissionRequest[]): void
}): ShellRunner {
  let active: AbortController | undefined
  let count = 0
  return {
    get isRunning() {
      return active !== undefined
    },
    stop: () => active?.abort(),
    async run(command, agent) {
      if (active) throw new Error("Another shell command is running. Stop it, or wait until it ends.")
      const abort = new AbortController()
      active = abort
      count += 1
      const id = `shell_${count}`
      const input = { command, description: "Command from the user" }
      const time = { start: Date.now() }
      let metadata: ToolStateRunning["metadata"]
      const showState = (state: ToolState) =>
        show({ id, callID: id, sessionID: "", messageID: "", type: "tool", tool: "$", state })
      showState({ status: "running", input, time })
      const messageID = newId("msg")
      const stop = followRequests(api, messageID, onRequests)
      try {
        const { state } = await api.callTool({
          ...{ tool: "bash", input, agent, messageID, signal: abort.signal },
          onProgress(state) {
            metadata = state.metadata
            showState(state)
          },
        })
        showState(abort.signal.aborted ? stopped(state) : withWholeOutput(state))
      } catch (error) {
        const failed = { status: "error", input, error: "", metadata } as const
        showState(stopped({ ...failed, time: { ...time, end: Date.now() } }))
        if (!abort.signal.aborted) throw error
      } finally {
        active = undefined
        stop()
        onRequests([])
      }
    },
  }
}

/** Returns the state of a command that was stopped, with its output so far. */
function stopped(state: ToolState): ToolState {
  if (state.status !== "error") return state
  const output = typeof state.metadata?.output === "string" ? state.metadata.output.trimEnd() : ""
  return { ...state, metadata: { ...state.metadata, output: `${output}\n[stopped]`.trimStart() } }
}

/** Matches the last line of the output, which contains the exit code. The title also shows the exit code. */
const exitLine = /\n?\[(?:exit code|killed by) [^\n]*\]\s*$/

/** Returns the state with the whole output in its metadata, which otherwise contains only the end of the output. */
function withWholeOutput(state: ToolState): ToolState {
  if (state.status !== "completed") return state
  const output = state.output.replace(exitLine, "")
  return { ...state, metadata: { ...state.metadata, output } }
}

/**
 * Calls `onRequests` with the waiting permission requests of a call without a session, each time they change. Returns a
 * function that unsubscribes.
 */
function followRequests(
  api: TackleApi,
  messageID: string,
  onRequests: (requests: readonly PermissionRequest[]) => void,
): () => void {
  let requests: readonly PermissionRequest[] = []
  return api.subscribe((event) => {
    if (event.type === "permission.asked" && event.request.tool?.messageID === messageID)
      requests = [...requests.filter(({ id }) => id !== event.request.id), event.request]
    else if (event.type === "permission.replied")
      requests = requests.filter(({ id }) => id !== event.requestID)
    else return
    onRequests(requests)
  })
}
