import type { Part } from "../schema/part.ts"

/** Where what the model streams goes: into the parts of its message, and into the record. */
export interface StepParts {
  /** What every new part of the message has. */
  base(): Pick<Part, "id" | "sessionID" | "messageID">
  /** Appends a part, which may grow from then on. Nothing is recorded. */
  add<P extends Part>(part: P): P
  /** Records a part as it is now: it does not change afterwards. */
  note(part: Part): void
  /** Announces what a part has grown by. */
  delta(partID: string, field: "text" | "raw", delta: string): void
}
