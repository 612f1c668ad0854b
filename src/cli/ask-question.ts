import type { Question, QuestionAnswers, QuestionDocument, QuestionRequest } from "../schema/question.ts"
import { question as put } from "./question.ts"
import { style } from "./view/style.ts"
import { visible } from "./view/visible.ts"

/** Stands for an answer in the person's own words. Labels cannot be numbers. */
const other = 0

/**
 * Puts the questions to the person, one after the other. Undefined: they dismissed them, by Escape at any one. Ctrl-C,
 * or the signal, throws `AbortedError`.
 */
export async function askQuestions(
  { questions, document, tool }: QuestionRequest,
  signal: AbortSignal,
): Promise<QuestionAnswers | undefined> {
  if (tool?.parent) process.stderr.write(style.dim(`The subagent ${visible(tool.parent.agent)} asks:\n`))
  if (document) process.stderr.write(`${showDocument(document)}\n`)
  const answers: QuestionAnswers = []
  for (const each of questions) {
    const answer = await askOne(each, signal)
    if (!answer) return undefined
    answers.push(answer)
  }
  return answers
}

/** The text between lines that say where it begins and ends. */
function showDocument({ title, path, text }: QuestionDocument): string {
  const head = style.dim(`── ${visible(title)} (${visible(path)})`)
  return `${head}\n${visible(text)}\n${style.dim("──")}`
}

async function askOne(question: Question, signal: AbortSignal): Promise<string[] | undefined> {
  const options = (question.options ?? []).map(({ label, description }) => ({
    value: label as string | typeof other,
    label: visible(label),
    ...(description === undefined ? {} : { hint: visible(description) }),
  }))
  if (options.length === 0) return askText(question, signal)
  const all = [...options, { value: other as string | typeof other, label: "something else…" }]
  const message = titleOf(question)
  const chosen = await put<(string | typeof other)[] | symbol>(async ({ multiselect, select }, stop) => {
    if (question.multiple)
      return multiselect({ message, options: all, required: false, output: process.stderr, signal: stop })
    const one = await select({ message, options: all, output: process.stderr, signal: stop })
    return typeof one === "symbol" ? one : [one]
  }, signal)
  if (!chosen) return undefined
  const labels = chosen.filter((value) => typeof value === "string")
  if (!chosen.includes(other)) return labels
  const written = await askText(question, signal)
  return written && [...labels, ...written]
}

async function askText(question: Question, signal: AbortSignal): Promise<string[] | undefined> {
  const written = await put(
    ({ text }, stop) => text({ message: titleOf(question), output: process.stderr, signal: stop }),
    signal,
  )
  if (written === undefined) return undefined
  return written.trim() === "" ? [] : [written.trim()]
}

function titleOf({ header, question }: Question): string {
  return visible(header === undefined ? question : `${header}: ${question}`)
}
