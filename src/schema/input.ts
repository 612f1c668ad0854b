import * as z from "zod"

/**
 * The time at which an input reaches the model. `steer` delivers it before the next step of the run, `queue` after the
 * run, and `now` immediately, by interrupting the run. In an idle session, each value starts a run.
 */
export const Delivery = z.enum(["steer", "queue", "now"])
export type Delivery = z.infer<typeof Delivery>

/** A file that the user sends with text. `url` is a data URL or an absolute path. */
export const PromptFile = z.object({
  mime: z.string(),
  url: z.string(),
  filename: z.string().optional(),
})

export type PromptFile = z.infer<typeof PromptFile>

/** Text from the user that waits for delivery to the model, or was delivered or withdrawn. */
export const Input = z.object({
  /** Chosen by the sender, or generated. Unique within its session. */
  id: z.string(),
  sessionID: z.string(),
  /** Sequence number of the event that announced the input. */
  seq: z.number(),
  delivery: Delivery,
  /** `promoted` means that the input became the message `messageID`. */
  state: z.enum(["pending", "promoted", "withdrawn"]),
  /** Position in the queue. Lower numbers come first. */
  position: z.number(),
  /** Whether the input must not be delivered, because a user is editing the input or its run could not start. */
  held: z.literal(true).optional(),
  /** True after an interrupt, until the next input is sent or the queue is resumed. */
  paused: z.literal(true).optional(),
  /** Reason why the engine holds the input: its run could not start. */
  problem: z.string().optional(),
  text: z.string(),
  /** Files sent with the text. Absent after the delivery, because the message then contains them. */
  files: z.array(PromptFile).optional(),
  /** The command that the text calls: a `CommandCall`. */
  command: z.looseObject({ name: z.string(), template: z.string(), arguments: z.string() }).optional(),
  /** SHA-256 of the content and delivery with which the input was sent. */
  digest: z.string(),
  /** Id of the engine that is delivering the input. Once set, the input can no longer be changed or withdrawn. */
  claimedBy: z.string().optional(),
  messageID: z.string().optional(),
  time: z.object({ created: z.number(), ended: z.number().optional() }),
})
export type Input = z.infer<typeof Input>
