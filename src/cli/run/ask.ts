import type { PermissionReply, PermissionRequest } from "../../schema/permission.ts"
import type { Question, QuestionAnswers, QuestionDocument, QuestionRequest } from "../../schema/question.ts"
import { wildcardCovers } from "../../util/wildcard.ts"
import { type Clack, question as put, question } from "../process/question.ts"
import { describeRequest, isShownWhole } from "../view/request.ts"
import { style } from "../view/style.ts"
import { visible } from "../view/visible.ts"

/** Asks for permission at the terminal. Escape refuses the request. Ctrl-C or the signal throws `AbortedError`. */
export async function askAtTerminal(
  request: PermissionRequest,
  { worktree, signal }: { worktree: string; signal: AbortSignal },
): Promise<PermissionReply> {
  let whole = isShownWhole(request)
  process.stderr.write(`${describeRequest(request, { worktree, whole })}\n`)
  for (;;) {
    const choice = await choose(request, { worktree, whole, signal })
    if (choice === "show") {
      whole = true
      process.stderr.write(`${describeRequest(request, { worktree, whole })}\n`)
      continue
    }
    if (choice === "once") return { reply: "once" }
    if (choice === "session" || choice === "project") return { reply: "always", scope: choice }
    if (choice === "narrow") {
      const reply = await askNarrower(request, { worktree, signal })
      // After Escape, the loop asks again.
      if (reply) return reply
      continue
    }
    return choice === "feedback" ? refuseWithWords(signal) : { reply: "reject" }
  }
}

type Choice = "once" | "session" | "project" | "narrow" | "show" | "reject" | "feedback"

/** Asks for the reply. Offers "always" only if the whole request was shown. */
function choose(
  { always }: PermissionRequest,
  { worktree, whole, signal }: { worktree: string; whole: boolean; signal: AbortSignal },
): Promise<Choice | undefined> {
  const options: { value: Choice; label: string; hint?: string }[] = [{ value: "once", label: "yes, once" }]
  if (!whole) options.push({ value: "show", label: "show everything" })
  else if (always.length > 0) {
    options.push(
      { value: "session", label: "always, in this session" },
      { value: "project", label: "always, in this project", hint: worktree },
      { value: "narrow", label: "always, with a narrower rule" },
    )
  }
  options.push({ value: "reject", label: "no" }, { value: "feedback", label: "no, and give a reason" })
  const ask = ({ select }: Clack, stop: AbortSignal) =>
    select({ message: "Allow this?", output: process.stderr, signal: stop, options })
  return question(ask, signal)
}

/** Asks for rules that are narrower than the proposed rules. Returns undefined for Escape. */
async function askNarrower(
  { permission, always }: PermissionRequest,
  { worktree, signal }: { worktree: string; signal: AbortSignal },
): Promise<PermissionReply | undefined> {
  const patterns: string[] = []
  for (const offered of always) {
    const ask = ({ text }: Clack, stop: AbortSignal) =>
      text({
        message: `Allow ${permission} (empty to skip):`,
        initialValue: offered,
        output: process.stderr,
        signal: stop,
        validate: (given) =>
          !given || wildcardCovers(offered, given) ? undefined : `The rule must be covered by ${offered}`,
      })
    const pattern = await question(ask, signal)
    if (pattern === undefined) return undefined
    if (pattern !== "") patterns.push(pattern)
  }
  if (patterns.length === 0) return undefined
  const askScope = ({ select }: Clack, stop: AbortSignal) =>
    select({
      message: "For how long?",
      output: process.stderr,
      signal: stop,
      options: [
        { value: "session" as const, label: "in this session" },
        { value: "project" as const, label: "in this project", hint: worktree },
      ],
    })
  const scope = await question(askScope, signal)
  return scope && { reply: "always", scope, patterns }
}

async function refuseWithWords(signal: AbortSignal): Promise<PermissionReply> {
  const write = ({ text }: Clack, stop: AbortSignal) =>
    text({ message: "What should it do instead?", output: process.stderr, signal: stop })
  const message = await question(write, signal)
  return message ? { reply: "reject", message } : { reply: "reject" }
}

/** Marks an answer in the user's own words. A number cannot be mistaken for a label. */
const other = 0

/**
 * Asks questions one after another. Returns undefined if the user dismisses a question with Escape. Ctrl-C or the
 * signal throws `AbortedError`.
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
