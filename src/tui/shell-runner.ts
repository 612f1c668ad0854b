import { stripVTControlCharacters } from "node:util"
import type { TackleApi } from "../client/api.ts"
import { showInvisible } from "../permission/invisible.ts"
import type { PermissionRequest } from "../schema/permission.ts"
import { oneLine } from "../view/visible.ts"

/** Runs shell commands of the user. They pass the same rules as those of the model. */
export interface ShellRunner {
  readonly isRunning: boolean
  /** Runs a command and shows its output. One command runs at a time. */
  run(command: string, agent: string | undefined): Promise<void>
  /** Stops the command. */
  stop(): void
}

/** Creates a runner. `onRequests` receives the permission requests of the command that wait for the user. */
export function createShellRunner({
  api,
  show,
  onRequests,
}: {
  api: TackleApi
  show(title: string, text: string): void
  onRequests(requests: readonly PermissionRequest[]): void
}): ShellRunner {
  let active: AbortController | undefined
  return {
    get isRunning() {
      return active !== undefined
    },
    stop: () => active?.abort(),
    async run(command, agent) {
      if (active) throw new Error("Another shell command is running. Esc stops it.")
      const abort = new AbortController()
      active = abort
      const title = `! ${oneLine(command, 60)}`
      show(title, "running… Esc stops it.")
      const stop = followRequests(api, command, onRequests)
      try {
        const input = { command, description: "Command of the user" }
        const { state } = await api.callTool({ tool: "bash", input, agent, signal: abort.signal })
        const text = state.status === "completed" ? state.output : state.error
        const exit =
          state.status === "completed" && state.metadata.exit !== 0 ? ` (exit ${state.metadata.exit})` : ""
        show(
          `${title}${exit}`,
          showInvisible(stripVTControlCharacters(text), { keepTabs: true }) || "(no output)",
        )
      } catch (error) {
        if (!abort.signal.aborted) throw error
        show(title, "Stopped.")
      } finally {
        active = undefined
        stop()
        onRequests([])
      }
    },
  }
}

/**
 * Follows the permission requests of a call without a session. Such a call has no id that the caller knows, so its
 * requests are recognized by their command.
 */
function followRequests(
  api: TackleApi,
  command: string,
  onRequests: (requests: readonly PermissionRequest[]) => void,
): () => void {
  let requests: readonly PermissionRequest[] = []
  return api.subscribe((event) => {
    if (event.type === "permission.asked" && event.request.metadata.command === command)
      requests = [...requests.filter(({ id }) => id !== event.request.id), event.request]
    else if (event.type === "permission.replied")
      requests = requests.filter(({ id }) => id !== event.requestID)
    else return
    onRequests(requests)
  })
}
