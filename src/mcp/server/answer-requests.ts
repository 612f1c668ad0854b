import type { ElicitRequestFormParams, ElicitResult } from "@modelcontextprotocol/server"
import type { AskedQuestion, Tackle } from "../../engine/tackle.ts"
import type { PermissionReply, PermissionRequest } from "../../schema/permission.ts"
import type { Question } from "../../schema/question.ts"
import type { ShowForm } from "./forms.ts"

/**
 * Asks the client's user for permission and passes the reply to the engine. Rejects the permission request if the
 * client cannot show forms. The returned promise rejects if the form fails in the client.
 */
export async function answerPermission(
  request: PermissionRequest,
  {
    tackle,
    show,
    describe,
  }: { tackle: Tackle; show: ShowForm | undefined; describe(request: PermissionRequest): string },
): Promise<void> {
  if (!show) {
    await tackle.reply(request.id, { reply: "reject" }, "no-terminal")
    return
  }
  const result = await unlessSettled(show(permissionForm(request, describe(request))), () =>
    tackle.pendingRequests(request.sessionID).some(({ id }) => id === request.id),
  )
  // Many clients answer `cancel` without asking the user, for example if they have no terminal.
  const source = result?.action === "cancel" ? "client" : "user"
  if (result) await tackle.reply(request.id, replyOf(request, result), source)
}

/**
 * Returns the result of a form, or undefined if the form was withdrawn. The client reports a withdrawn form as a
 * failure, which is expected.
 */
async function unlessSettled(
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

const labels: Record<PermissionReply["reply"], string> = {
  once: "Allow once",
  always: "Always allow in this session",
  reject: "Reject",
}

function permissionForm(request: PermissionRequest, description: string): Parameters<ShowForm>[0] {
  const choices = choicesFor(request)
  return {
    message: `A tool asks for permission.\n${description}`,
    requestedSchema: {
      type: "object",
      properties: {
        answer: {
          type: "string",
          title: "Answer",
          // All protocol revisions with forms support `enumNames`.
          enum: choices,
          enumNames: choices.map((choice) => labels[choice]),
        },
        message: {
          type: "string",
          title: "Message to the model",
          description: "Optional message that tells the model what to do instead if you reject the request.",
        },
      },
      required: ["answer"],
    },
  }
}

function choicesFor({ always }: PermissionRequest): PermissionReply["reply"][] {
  return always.length > 0 ? ["once", "always", "reject"] : ["once", "reject"]
}

/** Converts the form result to a reply. Any answer other than an offered choice rejects the request. */
function replyOf(request: PermissionRequest, { action, content }: ElicitResult): PermissionReply {
  const chosen =
    action === "accept" ? choicesFor(request).find((choice) => choice === content?.answer) : undefined
  if (chosen === "once") return { reply: "once" }
  if (chosen === "always") return { reply: "always", scope: "session" }
  const message = typeof content?.message === "string" ? content.message.trim() : ""
  return message === "" ? { reply: "reject" } : { reply: "reject", message }
}

/**
 * Shows a tool's questions as one form and passes the answers to the engine. Rejects the questions if the user
 * dismisses the form or the client cannot show forms. The returned promise rejects if the form fails in the client.
 */
export async function answerQuestion(request: AskedQuestion, show: ShowForm | undefined): Promise<void> {
  const { questions, document } = request
  const result = await show?.({
    message: document ? `${document.title}\n\n${document.text}` : "The model asks:",
    requestedSchema: {
      type: "object",
      properties: Object.fromEntries(questions.flatMap(fieldsOf)),
    },
  })
  if (result?.action !== "accept") await request.reject()
  else await request.reply(questions.map((question, index) => answersTo(question, index, result.content)))
}

type Properties = ElicitRequestFormParams["requestedSchema"]["properties"]

/**
 * Returns a field for the choice and a text field for a free-text answer. Without options, returns only the text field.
 */
function fieldsOf(question: Question, index: number): [name: string, field: Properties[string]][] {
  const { question: text, header, options = [], multiple = false } = question
  const title = header ?? `Question ${index + 1}`
  if (options.length === 0) return [[`text${index}`, { type: "string", title, description: text }]]
  const meanings = options.flatMap(({ label, description }) =>
    description ? `${label}: ${description}` : [],
  )
  const description = [text, ...meanings].join("\n")
  const labels = options.map(({ label }) => label)
  const choice: Properties[string] = multiple
    ? { type: "array", title, description, items: { type: "string", enum: labels } }
    : { type: "string", title, description, enum: labels }
  return [
    [`choice${index}`, choice],
    [`text${index}`, { type: "string", title: `${title}: another answer` }],
  ]
}

/** Returns the answers to a question. A typed answer replaces a single choice and is added to multiple choices. */
function answersTo(
  { options = [], multiple = false }: Question,
  index: number,
  content: ElicitResult["content"],
): string[] {
  const given = content?.[`text${index}`]
  const written = typeof given === "string" && given.trim() !== "" ? [given.trim()] : []
  const chosen = [content?.[`choice${index}`]].flat()
  const labels = options.flatMap(({ label }) => (chosen.includes(label) ? [label] : []))
  if (multiple) return [...labels, ...written]
  return written.length > 0 ? written : labels.slice(0, 1)
}
