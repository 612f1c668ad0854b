import type {
  ClientCapabilities,
  ElicitRequestFormParams,
  ElicitResult,
  Server,
  ServerContext,
} from "@modelcontextprotocol/server"
import { AbortedError } from "../../util/abort.ts"

/** A form to the person at the client. */
export type AskByForm = (form: Omit<ElicitRequestFormParams, "mode">) => Promise<ElicitResult>

/** The way to the person at one client. */
export interface Forms {
  /** The way to the person within a call. Undefined where the call is over, or the client shows no forms. */
  forCall(requestID: string, call: ServerContext | undefined): AskByForm | undefined
  /** Takes a form back: what it asks about is settled. */
  withdraw(requestID: string): void
}

/** A person may be away from the screen for this long. Then nobody was there. */
const patienceMs = 60 * 60 * 1000

/** The forms that one client is shown, by what they ask about. */
export function createForms(server: Server): Forms {
  const open = new Map<string, AbortController>()

  return {
    forCall(requestID, call) {
      if (!call || !canAskByForm(server.getClientCapabilities())) return undefined
      return async (form) => {
        const withdrawn = new AbortController()
        open.set(requestID, withdrawn)
        try {
          return await call.mcpReq.elicitInput(form, {
            timeout: patienceMs,
            signal: AbortSignal.any([withdrawn.signal, call.mcpReq.signal]),
            // On the stream of the call: over HTTP the client may have no other, and the form would be lost.
            relatedRequestId: call.mcpReq.id,
          })
        } finally {
          open.delete(requestID)
        }
      }
    },
    withdraw(requestID) {
      open.get(requestID)?.abort(new AbortedError("The question is settled."))
    },
  }
}

/** True for a client that shows forms. One that names no kind of elicitation means forms. */
export function canAskByForm(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation
  if (!elicitation) return false
  return elicitation.form !== undefined || elicitation.url === undefined
}
