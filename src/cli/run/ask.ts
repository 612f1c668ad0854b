import { partsOf } from "../../permission/pending-requests.ts"
import type { PermissionReply, PermissionRequest } from "../../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionDocument, QuestionRequest } from "../../schema/question.ts"
import { wildcardCovers } from "../../util/wildcard.ts"
import type { Choice } from "../../view/decision.ts"
import { type ReplyChoice, replyChoices } from "../../view/reply-choices.ts"
import { visible } from "../../view/visible.ts"
import { decide } from "../process/choice.ts"
import type { Prompts } from "../process/line-prompts.ts"
import { question as put, question } from "../process/question.ts"
import { describeRequest, isShownWhole } from "../view/request.ts"
import { style } from "../view/style.ts"

/**
 * Asks for permission in the terminal. Escape rejects the request. Throws `AbortedError` if the user presses Ctrl+C or
 * the signal aborts. `waiting` is the number of other requests that wait for an answer.
 */
export async function askAtTerminal(
  request: PermissionRequest,
  { worktree, waiting, signal }: { worktree: string; waiting: number; signal: AbortSignal },
): Promise<PermissionReply> {
  let whole = isShownWhole(request)
  process.stderr.write(`${describeRequest(request, { worktree, whole })}\n`)
  const message = waiting === 0 ? "Allow this?" : `Allow this? (${waiting} more waiting)`
  for (;;) {
    const choices = answersTo(request, { worktree, whole })
    const answer = await decide<Answer>({ message, choices, safe: "reject" }, signal)
    if (answer === "show") {
      whole = true
      process.stderr.write(`${describeRequest(request, { worktree, whole })}\n`)
      continue
    }
    if (answer === "once") return { reply: "once" }
    if (answer === "session" || answer === "project") return { reply: "always", scope: answer }
    if (answer === "narrow") {
      const reply = await askNarrower(request, { worktree, signal })
      // After Escape, the loop asks again.
      if (reply) return reply
      continue
    }
    return answer === "feedback" ? refuseWithWords(signal) : { reply: "reject" }
  }
}

type Answer = ReplyChoice | "narrow" | "show"

/** Returns the choices. Offers "always" only if the whole request was shown. */
function answersTo(
  { always }: PermissionRequest,
  { worktree, whole }: { worktree: string; whole: boolean },
): Choice<Answer>[] {
  const choices: Choice<Answer>[] = replyChoices({ always: whole && always.length > 0, worktree })
  if (!whole) choices.push({ value: "show", key: "a", digit: 6, words: ["all"], label: "show everything" })
  else if (always.length > 0)
    choices.push({
      value: "narrow",
      key: "r",
      digit: 6,
      words: ["rule"],
      label: "always, with a narrower rule",
    })
  return choices
}

/**
 * Asks for rules that are narrower than the proposed rules. Returns undefined if the user presses Escape, skips all
 * rules or goes back.
 */
async function askNarrower(
  request: PermissionRequest,
  { worktree, signal }: { worktree: string; signal: AbortSignal },
): Promise<PermissionReply | undefined> {
  const patterns: string[] = []
  const offers = partsOf(request).flatMap(({ permission, always }) =>
    always.map((offered) => ({ permission, offered })),
  )
  for (const { permission, offered } of offers) {
    const ask = ({ text }: Prompts, stop: AbortSignal) =>
      text({
        message: `Allow ${permission} (leave empty to skip this rule):`,
        initialValue: offered,
        output: process.stderr,
        signal: stop,
        validate: (given) =>
          !given || wildcardCovers(offered, given)
            ? undefined
            : `The rule must not allow more than ${offered}`,
      })
    const pattern = await question(ask, signal)
    if (pattern === undefined) return undefined
    if (pattern !== "") patterns.push(pattern)
  }
  if (patterns.length === 0) return undefined
  const choices: Choice<"session" | "project" | undefined>[] = [
    { value: "session", key: "s", digit: 2, words: ["session"], label: "in this session" },
    { value: "project", key: "p", digit: 3, words: ["project"], label: "in this project", hint: worktree },
    { value: undefined, key: "n", digit: 4, words: ["no"], label: "back to the question" },
  ]
  const scope = await decide({ message: "For how long?", choices, safe: undefined }, signal)
  return scope && { reply: "always", scope, patterns }
}

async function refuseWithWords(signal: AbortSignal): Promise<PermissionReply> {
  const write = ({ text }: Prompts, stop: AbortSignal) =>
    text({ message: "What should the agent do instead?", output: process.stderr, signal: stop })
  const message = await question(write, signal)
  return message ? { reply: "reject", message } : { reply: "reject" }
}

/** Value of the choice "something else…". It is a number, so that it cannot equal an option's label. */
const other = 0

/**
 * Asks questions one after another. Returns undefined if the user dismisses a question, as with Escape. Throws
 * `AbortedError` if the user presses Ctrl+C or the signal aborts.
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

/** Formats the document between lines that mark its beginning and end. */
function showDocument({ title, path, text }: QuestionDocument): string {
  const head = style.dim(`── ${visible(title)} (${visible(path)})`)
  return `${head}\n${visible(text)}\n${style.dim("──")}`
}

async function askOne(question: Question, signal: AbortSignal): Promise<string[] | undefined> {
  const options = (question.options ?? []).map(({ label, description }) => ({
    value: label as string | typeof other,
    label: visible(label),
    hint: description === undefined ? undefined : visible(description),
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
