import * as z from "zod"
import { Delivery, Input } from "../../schema/input.ts"
import { ServerError } from "../errors.ts"
import { described, isChange, name, noChange } from "./named.ts"

/** An input with the descriptions of its fields. */
export const InputView = described(Input, {
  id: "Chosen by the sender, or generated. Unique within the session",
  seq: "Number of the change with which the input was stored",
  state: "`promoted`: delivered to the model as the message `messageID`",
  position: "Order of delivery: lower numbers come first. The numbers of a session may have gaps",
  held: "True while the input is held, because a user is editing it or its run could not start. The input is not delivered until a client sets `held` to false",
  paused:
    "True after an interrupt. The input is not delivered until the next input or `POST /session/{id}/resume`",
  problem: "Reason why the engine holds the input",
  files: "Attached files. Absent after the delivery, because the message contains them",
  command: "The command that the text calls",
  digest:
    "Hash of the content and delivery that were sent originally. Editing the input does not change the hash",
  claimedBy:
    "Process that is delivering the input. From this change on, the input cannot be changed or withdrawn. A second change with the state `promoted` follows",
  messageID: "Id of the user message. Set if the state is `promoted`",
})

const Receipt = z.object({
  id: z.string(),
  seq: z.number().describe("Number of the change with which the input was stored"),
  state: z.enum(["pending", "promoted", "withdrawn"]),
})

const TextInputPart = z.strictObject({ type: z.literal("text"), text: z.string() })
const inputFile = {
  mime: z.string(),
  url: z
    .string()
    .regex(/^data:[^,]*;base64,[A-Za-z0-9+/]*={0,2}$/, {
      error: "expected a base64 data URL; to send a project file, mention it as @path in the text",
    })
    .openapi({
      description: "Base64 data URL. To send a project file, mention it in the text as `@path`",
    }),
  filename: z.string().optional(),
}
/** Throws `ServerError` if a file in another protocol's request is not a base64 data URL. */
export function assertDataUrls(files: readonly { url: string }[]): void {
  const refused = files.map(({ url }) => inputFile.url.safeParse(url)).find(({ success }) => !success)
  if (!refused?.error) return
  throw new ServerError(`A file is not valid: ${refused.error.issues[0]?.message}.`, {
    code: "request.invalid",
  })
}

const FileInputPart = z.strictObject({ type: z.literal("file"), ...inputFile })

/** A user's text and files, as parts of an input. */
export const InputParts = z.array(z.discriminatedUnion("type", [TextInputPart, FileInputPart])).min(1)
export type InputParts = z.infer<typeof InputParts>

/** Schemas for the input queue. */
export const inputResponses = {
  input: name("Input", InputView),
  receipt: name("Receipt", Receipt),
}

/** Bodies of requests that change the input queue. Unknown fields are errors. */
export const inputBodies = {
  send: z
    .strictObject({
      id: z.string().optional().openapi({
        pattern: "^[A-Za-z0-9_.:-]{1,200}$",
        description:
          "Chosen by the client. Unique within the session. If the id exists, a request with the same content and delivery returns the stored input, and any other request receives status 409",
      }),
      text: z.string().optional(),
      parts: InputParts.optional().openapi({ description: "Texts and files, instead of `text`" }),
      delivery: Delivery.optional().openapi({
        description:
          "When to deliver the input. `steer` (default): before the next step of a run. `queue`: after the run. `now`: interrupts the run",
      }),
    })
    .refine((body) => (body.text === undefined) !== (body.parts === undefined), {
      error: "set either `text` or `parts`",
    })
    .openapi("NewInput"),
  update: z
    .strictObject({
      text: z.string().optional(),
      files: z
        .array(z.strictObject(inputFile))
        .optional()
        .openapi({ description: "Files to replace the input's files" }),
      delivery: Delivery.optional(),
      position: z.int().min(0).optional().openapi({
        description:
          "New position among the pending inputs, from 0. A number past the end moves the input to the end",
      }),
      held: z.boolean().optional().openapi({
        description:
          "Whether to hold the input. A held input is not delivered until `held` is set to false, which starts a run if the session is idle",
      }),
    })
    .refine(isChange, noChange)
    .openapi("InputChange"),
  interrupt: z
    .strictObject({
      clear: z
        .boolean()
        .optional()
        .openapi({ description: "Whether to withdraw the pending inputs and return them" }),
    })
    .openapi("Interrupt"),
}
