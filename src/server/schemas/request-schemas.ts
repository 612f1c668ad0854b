import * as z from "zod"
import { Grant, PermissionRequest } from "../../schema/permission.ts"
import { QuestionRequest } from "../../schema/question.ts"
import { described, name } from "./named.ts"

/** A permission request with the descriptions of its fields. */
export const PermissionRequestView = described(PermissionRequest.unwrap(), {
  permission: "Kind of action, such as `bash` or `edit`",
  patterns: "What the call does: commands, paths or addresses",
  always:
    "Patterns that a reply with `session` or `project` allows. If the list is empty, only `once` and `reject` are valid",
  also: "Other permissions that the call needs, such as `edit` for a command that writes a file. A reply also applies to these permissions",
  rules:
    "Rules that would allow the call, in the format of `--allow`, such as `bash:npm test`. Empty if no such rules are known",
  metadata: "Details for the decision, such as a diff or the command. They depend on the tool",
  tool: "The call. In a subagent, `parent` is the call that started the subagent",
})

/** A reply to a permission request or a question. */
export const Reply = z.union(
  [
    z.strictObject({
      reply: z.enum(["once", "session", "project", "reject"]).openapi({
        description:
          "`once` allows this call. `session` and `project` also allow the patterns in `always` from now on: in this session, or in all sessions of the project. `DELETE /grant/{id}` revokes the grant",
      }),
      message: z.string().optional().openapi({ description: "Message for the model. Only with `reject`" }),
      pattern: z
        .union([z.string(), z.array(z.string()).min(1)])
        .optional()
        .openapi({
          description:
            "Patterns to allow from now on, instead of the patterns in `always`. Each pattern must be covered by `always`. This call is allowed in any case. Only with `session` and `project`",
        }),
    }),
    z.strictObject({
      answers: z.array(z.array(z.string())).openapi({
        description: "One list of answers per question. An empty list skips the question",
      }),
    }),
    z.strictObject({ dismissed: z.literal(true) }),
  ],
  {
    error:
      'expected {"reply": "once" | "session" | "project" | "reject"} for a permission request, or {"answers": [["…"]]} or {"dismissed": true} for questions',
  },
)
export type Reply = z.infer<typeof Reply>

const WaitingRequest = z.union([
  z.object({ type: z.literal("permission"), ...PermissionRequestView.shape }),
  z.object({ type: z.literal("question"), ...QuestionRequest.unwrap().shape }),
])

name("PermissionRequest", PermissionRequestView)
name("QuestionRequest", QuestionRequest)

/** Schemas for requests and grants. */
export const requestResponses = {
  request: name("Request", WaitingRequest),
  grant: name(
    "Grant",
    described(Grant.unwrap(), {
      sessionID: "Set if the scope is `session`",
      worktree: "Project in which the grant applies",
      pattern: "Pattern to allow. May contain `*` and `?`",
    }),
  ),
}

/** The body of a reply. */
export const ReplyBody = Reply.superRefine((reply, context) => {
  if (!("reply" in reply)) return
  const isGrant = reply.reply === "session" || reply.reply === "project"
  if (reply.pattern !== undefined && !isGrant)
    context.addIssue({ code: "custom", path: ["pattern"], message: "only with `session` and `project`" })
  if (reply.message !== undefined && reply.reply !== "reject")
    context.addIssue({ code: "custom", path: ["message"], message: "only with `reject`" })
}).openapi("Reply")
