import type { TackleApi } from "../client/api.ts"
import type { PromptFile } from "../schema/input.ts"
import type { ToolPart } from "../schema/part.ts"
import type { ToolState, ToolStateRunning } from "../schema/tool-state.ts"
import { newId } from "../util/id.ts"

/**
 * Runs the user's shell commands. A command that a rule denies does not run. If the rules ask, the command runs without
 * a question, because the user typed it.
 */
export interface ShellRunner {
  readonly isRunning: boolean
  /**
   * Runs a command, and resolves with its last state when it ends. Rejects if another command is running or the request
   * fails.
   */
  run(command: string, agent: string | undefined): Promise<ToolState>
  /** Stops the command. */
  stop(): void
}

/** Creates a runner. `show` receives the call with its output so far, and finally with its result. */
export function createShellRunner({
  api,
  show,
}: {
  api: TackleApi
  show(call: ToolPart): void
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
      const stop = allowOnce(api, messageID)
      try {
        const { state } = await api.callTool({
          ...{ tool: "bash", input, agent, messageID, signal: abort.signal },
          onProgress(state) {
            metadata = state.metadata
            showState(state)
          },
        })
        const ended = abort.signal.aborted ? stopped(state) : state
        showState(withWholeOutput(ended))
        return ended
      } catch (error) {
        const failed = { status: "error", input, error: "", metadata } as const
        const ended = stopped({ ...failed, time: { ...time, end: Date.now() } })
        showState(ended)
        if (!abort.signal.aborted) throw error
        return ended
      } finally {
        active = undefined
        stop()
      }
    },
  }
}

/** Returns the file that shows the model a command of the user and its output. */
export function outputFile(command: string, state: ToolState): PromptFile {
  const output = state.status === "completed" ? state.output : state.status === "error" ? state.error : ""
  const text = `<user_command>\nThe user ran this shell command:\n${command}\n\nOutput:\n${output}\n</user_command>`
  const url = `data:text/plain;base64,${Buffer.from(text).toString("base64")}`
  return { mime: "text/plain", url, filename: `$ ${command}` }
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
 * Allows once what the rules ask about a call without a session. A denied call makes no request. Returns a function that
 * unsubscribes.
 */
function allowOnce(api: TackleApi, messageID: string): () => void {
  return api.subscribe((event) => {
    if (event.type !== "permission.asked" || event.request.tool?.messageID !== messageID) return
    // If the reply cannot be delivered, the call fails too, and the user sees its error.
    api.reply(event.request.id, { reply: "once" }).catch(() => {})
  })
}
