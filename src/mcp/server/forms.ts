import {
  type ClientCapabilities,
  type ElicitRequestFormParams,
  type ElicitResult,
  isSpecType,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { AskForm } from "../../tool/context.ts"
import { AbortedError } from "../../util/abort.ts"
import { newId } from "../../util/id.ts"

/** Shows a form to the client's user. */
export type ShowForm = (form: Omit<ElicitRequestFormParams, "mode">) => Promise<ElicitResult>

/** Shows forms to one client's user. */
export interface Forms {
  /** Returns the reason why the client's user cannot be asked, or undefined if forms can be shown. */
  unavailableReason(): string | undefined
  /**
   * Returns a function that shows a form during a call, or undefined if the call has ended or forms cannot be shown.
   */
  forCall(requestID: string, call: ServerContext | undefined): ShowForm | undefined
  /** Withdraws a form whose request has been settled. */
  withdraw(requestID: string): void
}

/** Time in milliseconds after which a form without an answer expires. */
const answerMs = 60 * 60 * 1000

/**
 * Creates the forms of one client. Forms are identified by their request ids. If `trustClient` is false, no forms are
 * shown, because a program that sends a call could approve its own call.
 */
export function createForms(server: Server, { trustClient }: { trustClient: boolean }): Forms {
  const open = new Map<string, AbortController>()

  function unavailableReason(): string | undefined {
    if (!trustClient)
      return "Without --trust-client, this server does not accept its clients' answers as answers from the user."
    if (!canShowForms(server.getClientCapabilities()))
      return "This MCP client cannot show forms (elicitation)."
    return undefined
  }

  return {
    unavailableReason,
    forCall(requestID, call) {
      if (!call || unavailableReason() !== undefined) return undefined
      return async (form) => {
        const withdrawn = new AbortController()
        open.set(requestID, withdrawn)
        try {
          return await call.mcpReq.elicitInput(form, {
            timeout: answerMs,
            signal: AbortSignal.any([withdrawn.signal, call.mcpReq.signal]),
            // Uses the stream of the call, which may be the client's only stream over HTTP.
            relatedRequestId: call.mcpReq.id,
          })
        } finally {
          open.delete(requestID)
        }
      }
    },
    withdraw(requestID) {
      open.get(requestID)?.abort(new AbortedError("The question no longer needs an answer."))
    },
  }
}

/** Returns true if the client can show forms. A client that declares elicitation without a mode supports forms. */
function canShowForms(capabilities: ClientCapabilities | undefined): boolean {
  const elicitation = capabilities?.elicitation
  if (!elicitation) return false
  return elicitation.form !== undefined || elicitation.url === undefined
}

/**
 * Returns a function that forwards forms from upstream MCP servers to the client, or undefined if forms cannot be
 * shown.
 */
export function forwardForms(forms: Forms, context: ServerContext): AskForm | undefined {
  if (!forms.forCall("", context)) return undefined
  return async ({ message, requestedSchema }, signal) => {
    const form = { message, requestedSchema }
    if (!isSpecType.ElicitRequestFormParams(form))
      throw new TypeError("The form does not follow the protocol.")
    const id = newId("per")
    const show = forms.forCall(id, context)
    if (!show) return { action: "decline" }
    const withdraw = () => forms.withdraw(id)
    signal.addEventListener("abort", withdraw, { once: true })
    try {
      const answer = show(form)
      if (signal.aborted) withdraw()
      return await answer
    } finally {
      signal.removeEventListener("abort", withdraw)
    }
  }
}
