import type { ElicitRequestFormParams, ElicitResult } from "@modelcontextprotocol/server"
import type { AskedQuestion } from "../../engine/tackle.ts"
import type { Question } from "../../schema/question.ts"
import type { AskByForm } from "./forms.ts"

type Properties = ElicitRequestFormParams["requestedSchema"]["properties"]

/**
 * Shows the questions of a tool as one form, and gives the engine the answers. Dismissed, or without a way to ask, they
 * are rejected. Rejects where the client fails at the form.
 */
export async function answerQuestion(request: AskedQuestion, ask: AskByForm | undefined): Promise<void> {
  const { questions, document } = request
  const result = await ask?.({
    message: document ? `${document.title}\n\n${document.text}` : "The model asks.",
    requestedSchema: {
      type: "object",
      properties: Object.fromEntries(questions.flatMap(fieldsOf)),
    },
  })
  if (result?.action !== "accept") request.reject()
  else request.reply(questions.map((question, index) => answersTo(question, index, result.content)))
}

/** A choice and a line for words of one's own, or the line alone. */
function fieldsOf(question: Question, index: number): [name: string, field: Properties[string]][] {
  const { question: text, header, options = [], multiple = false } = question
  const about = { title: header ?? `Question ${index + 1}` }
  if (options.length === 0) return [[`words${index}`, { type: "string", ...about, description: text }]]
  const meanings = options.flatMap(({ label, description }) =>
    description ? `${label}: ${description}` : [],
  )
  const description = [text, ...meanings].join("\n")
  const labels = options.map(({ label }) => label)
  const choice: Properties[string] = multiple
    ? { type: "array", ...about, description, items: { type: "string", enum: labels } }
    : { type: "string", ...about, description, enum: labels }
  return [
    [`choice${index}`, choice],
    [`words${index}`, { type: "string", title: `${about.title}: another answer` }],
  ]
}

/** Words of one's own stand for the choice where only one answer is wanted, else beside it. */
function answersTo(
  { options = [], multiple = false }: Question,
  index: number,
  content: ElicitResult["content"],
): string[] {
  const given = content?.[`words${index}`]
  const words = typeof given === "string" && given.trim() !== "" ? [given.trim()] : []
  const chosen = [content?.[`choice${index}`]].flat()
  const labels = options.flatMap(({ label }) => (chosen.includes(label) ? [label] : []))
  if (multiple) return [...labels, ...words]
  return words.length > 0 ? words : labels.slice(0, 1)
}
