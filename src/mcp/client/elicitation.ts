import type { ElicitRequestFormParams, ElicitResult } from "@modelcontextprotocol/client"
import type { Question } from "../../schema/question.ts"
import type { AskPerson, FormAnswer } from "../../tool/ask-person.ts"
import type { ToolContext } from "../../tool/context.ts"
import { type FieldValue, type FormField, formField, isFieldValue } from "./elicitation-field.ts"

/** A person who gives answers that do not fit so often is not asked any more. */
const attempts = 3

/**
 * A server's form as questions to the person, who is told which server asks. What they leave open has its default; an
 * answer that does not fit is asked for again. Where forms can be shown they see the form itself. Nobody there: declined.
 * Dismissed: cancelled. Throws as asking does, and when the signal fires.
 */
export async function elicit(
  server: string,
  { message, requestedSchema }: ElicitRequestFormParams,
  { question: ask, form }: Pick<ToolContext, "question" | "form">,
  signal: AbortSignal,
): Promise<ElicitResult> {
  const lead = `The MCP server ${server} asks: ${message}`
  if (form) return toElicitResult(await form({ message: lead, requestedSchema }, signal))
  if (!ask) return { action: "decline" }
  const required = new Set(requestedSchema.required)
  const fields = Object.entries(requestedSchema.properties).map(([name, schema]) =>
    formField(name, schema, required.has(name)),
  )
  const asking: AskPerson = (questions) => ask(questions, undefined, signal)
  return fields.length === 0 ? confirm(lead, asking) : fillIn(lead, fields, asking)
}

/** The server checks what it gets by its form; what no form can hold is left out. */
function toElicitResult({ action, content = {} }: FormAnswer): ElicitResult {
  if (action !== "accept") return { action }
  const fitting = Object.entries(content).flatMap(([name, value]) =>
    isFieldValue(value) ? [[name, value] as const] : [],
  )
  return { action, content: Object.fromEntries(fitting) }
}

/** A form without fields is a question for leave. */
async function confirm(question: string, ask: AskPerson): Promise<ElicitResult> {
  const answers = await ask([{ question, options: [{ label: "Accept" }, { label: "Decline" }] }])
  const word = answers?.[0]?.[0]
  if (word === undefined) return { action: "cancel" }
  return word === "Accept" ? { action: "accept", content: {} } : { action: "decline" }
}

async function fillIn(lead: string, fields: readonly FormField[], ask: AskPerson): Promise<ElicitResult> {
  const content: Record<string, FieldValue> = {}
  let open: { field: FormField; problem?: string }[] = fields.map((field) => ({ field }))
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const answers = await ask(open.map((entry, index) => wordsOf(entry, index === 0 ? lead : undefined)))
    if (!answers) return { action: "cancel" }
    open = open.flatMap(({ field }, index) => {
      const read = readAnswer(field, answers[index] ?? [])
      if ("problem" in read) return [{ field, problem: read.problem }]
      if (read.value !== undefined) content[field.name] = read.value
      return []
    })
    if (open.length === 0) return { action: "accept", content }
  }
  return { action: "cancel" }
}

function wordsOf(
  { field, problem }: { field: FormField; problem?: string },
  lead: string | undefined,
): Question {
  const lines = [lead, field.question.question, problem === undefined ? undefined : `Please ${problem}.`]
  return { ...field.question, question: lines.filter((line) => line !== undefined).join("\n") }
}

function readAnswer(field: FormField, words: readonly string[]) {
  if (words.length > 0) return field.read(words)
  if (field.preset !== undefined || !field.required) return { value: field.preset }
  return { problem: "answer: it may not be left open" }
}
