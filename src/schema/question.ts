import * as z from "zod"
import { CallReference } from "./permission.ts"

/** A question of the model to the person. Without options they answer in their own words; they may do so anyway. */
export const Question = z.lazy(() =>
  z.object({
    question: z.string().min(1).describe("The whole question"),
    header: z.string().max(60).optional().describe("Its subject in 1 to 3 words"),
    options: z
      .array(
        z.object({
          label: z.string().min(1).describe("The answer, in 1 to 5 words"),
          description: z.string().optional().describe("What it would mean"),
        }),
      )
      .max(20)
      .optional()
      .describe("Answers to choose from; the person may always write another"),
    multiple: z.boolean().optional().describe("True where several may be chosen"),
  }),
)
export type Question = z.infer<typeof Question>

/** What the person reads before they answer, such as a plan. `path` is the file that holds it whole. */
export const QuestionDocument = z.lazy(() =>
  z.object({ title: z.string(), path: z.string(), text: z.string() }),
)
export type QuestionDocument = z.infer<typeof QuestionDocument>

/** Questions that wait for a person. They are answered together. */
export const QuestionRequest = z.lazy(() =>
  z.object({
    id: z.string(),
    sessionID: z.string(),
    questions: z.array(Question),
    document: QuestionDocument.optional(),
    tool: CallReference.optional(),
  }),
)
export type QuestionRequest = z.infer<typeof QuestionRequest>

/** For each question the labels chosen or the words written. An empty list: left open. */
export const QuestionAnswers = z.lazy(() => z.array(z.array(z.string())))
export type QuestionAnswers = z.infer<typeof QuestionAnswers>
