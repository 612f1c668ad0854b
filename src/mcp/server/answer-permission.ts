import type { ElicitResult } from "@modelcontextprotocol/server"
import type { Tackle } from "../../engine/tackle.ts"
import type { PermissionReply, PermissionRequest } from "../../schema/permission.ts"
import type { AskByForm } from "./forms.ts"

/**
 * Asks the person at the client for leave, and gives the engine their answer. Where there is no way to ask, the request
 * is refused as one that nobody could be asked about. Rejects where the client fails at the form.
 */
export async function answerPermission(
  request: PermissionRequest,
  {
    tackle,
    ask,
    describe,
  }: { tackle: Tackle; ask: AskByForm | undefined; describe(request: PermissionRequest): string },
): Promise<void> {
  if (!ask) {
    await tackle.reply(request.id, { reply: "reject" }, "no-terminal")
    return
  }
  const result = await settledElsewhere(ask(formOf(request, describe(request))), () =>
    tackle.pendingRequests(request.sessionID).some(({ id }) => id === request.id),
  )
  if (result) await tackle.reply(request.id, replyOf(request, result), "person")
}

/** A form that was taken back fails at the client, which is no fault: undefined. */
async function settledElsewhere(
  result: Promise<ElicitResult>,
  isPending: () => boolean,
): Promise<ElicitResult | undefined> {
  try {
    return await result
  } catch (error) {
    if (isPending()) throw error
    return undefined
  }
}

const words: Record<PermissionReply["reply"], string> = {
  once: "Allow once",
  always: "Always allow in this session",
  reject: "Reject",
}

function formOf(request: PermissionRequest, description: string): Parameters<AskByForm>[0] {
  const choices = choicesFor(request)
  return {
    message: `A tool asks for leave.\n${description}`,
    requestedSchema: {
      type: "object",
      properties: {
        answer: {
          type: "string",
          title: "Answer",
          // Titles as all revisions with forms have them.
          enum: choices,
          enumNames: choices.map((choice) => words[choice]),
        },
        message: {
          type: "string",
          title: "What to do instead",
          description: "With Reject: what the model is told. May be left empty.",
        },
      },
      required: ["answer"],
    },
  }
}

function choicesFor({ always }: PermissionRequest): PermissionReply["reply"][] {
  return always.length > 0 ? ["once", "always", "reject"] : ["once", "reject"]
}

/** Anything but a yes that was on offer is a no. */
function replyOf(request: PermissionRequest, { action, content }: ElicitResult): PermissionReply {
  const chosen =
    action === "accept" ? choicesFor(request).find((choice) => choice === content?.answer) : undefined
  if (chosen === "once") return { reply: "once" }
  if (chosen === "always") return { reply: "always", scope: "session" }
  const message = typeof content?.message === "string" ? content.message.trim() : ""
  return message === "" ? { reply: "reject" } : { reply: "reject", message }
}
