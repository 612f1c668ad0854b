import type { Question, QuestionAnswers, QuestionDocument } from "../schema/question.ts"

/**
 * Asks the person and waits, without a limit of time. They are shown the document first. Undefined: they dismissed it.
 * Throws when the call is aborted, or when `stop` fires: the question is then taken back.
 */
export type AskPerson = (
  questions: Question[],
  document?: QuestionDocument,
  stop?: AbortSignal,
) => Promise<QuestionAnswers | undefined>

/**
 * Shows the person a form as it is: `requestedSchema` is JSON Schema as MCP has it for forms. Rejects where the form
 * cannot be shown, and when the signal fires.
 */
export type AskForm = (
  form: { message: string; requestedSchema: Readonly<Record<string, unknown>> },
  signal: AbortSignal,
) => Promise<FormAnswer>

/** What the person made of a form. `content` comes with `accept`, by the names of the fields. */
export interface FormAnswer {
  action: "accept" | "decline" | "cancel"
  content?: Readonly<Record<string, unknown>> | undefined
}
