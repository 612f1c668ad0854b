import * as z from "zod"
import { type AnswerSchema, readAnswerSchema } from "../model/answer-schema.ts"
import type { ModelInfo } from "../model/model.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { MessageError } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import { describeIssues } from "../tool/validate.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"

/** The tool by which a model gives an answer of a certain shape, where its server has no other way. */
const answerTool = "final_answer"

/** How often a model is told that its answer does not fit, before the run fails. */
const maxRetries = 2

/** `open`: the work goes on. `retry`: it stopped without the answer, and is to be told so. */
export type Verdict =
  | { kind: "met" | "open" }
  | { kind: "retry"; message: string }
  | { kind: "failed"; error: MessageError }

/** What a prompt's answer has to be, and how far the model is with it. For one run. */
export interface AnswerDemand {
  /** For the model, with the prompt. */
  readonly instructions: string
  /** Sent as the format of the answer, where the server knows such a thing. */
  readonly format?: JsonSchema
  /** Offered beside the other tools, where it does not. */
  readonly tool?: OfferedTool
  /** To be asked after each step, with its parts. */
  judge(parts: readonly Part[]): Verdict
  /** The answer as JSON in one line, once it was met. */
  readonly answer: string | undefined
}

/** Throws `UsageError` for a schema that cannot be used. */
export function demandAnswer(schema: unknown, model: ModelInfo): AnswerDemand {
  const shape = readAnswerSchema(schema)
  const native = model.structuredOutput === true
  let answer: string | undefined
  let failures = 0

  function take(value: unknown): void {
    answer = JSON.stringify(value)
  }

  function fail(problem: string): Verdict {
    failures += 1
    if (failures > maxRetries) {
      const message = `The answer did not fit the schema after ${maxRetries + 1} attempts: ${problem}.`
      return { kind: "failed", error: { name: "output", message } }
    }
    const way = native
      ? "Answer with the JSON alone"
      : `Call ${answerTool} with it, or answer with the JSON alone`
    const message = `The answer is not there yet: ${problem}. ${way}. It has to fit this JSON Schema:\n${JSON.stringify(shape.sent)}`
    return { kind: "retry", message }
  }

  return {
    ...(native ? { format: shape.sent } : { tool: toolFor(shape, take) }),
    instructions: native
      ? `When everything is done, answer with JSON alone that fits this JSON Schema:\n${JSON.stringify(shape.sent)}`
      : `When everything is done, give the answer by a call of ${answerTool}.`,
    get answer() {
      return answer
    },
    judge(parts) {
      if (answer !== undefined) return { kind: "met" }
      const calls = parts.filter((part) => part.type === "tool")
      const refused = calls.find(({ tool }) => tool === answerTool)
      if (refused?.state.status === "error") {
        const verdict = fail(refused.state.error)
        // What was wrong stands in the result of the call.
        return verdict.kind === "failed" ? verdict : { kind: "open" }
      }
      if (calls.length > 0) return { kind: "open" }
      const read = readAnswer(parts, shape)
      if (!read.ok) return fail(read.problem)
      take(read.value)
      return { kind: "met" }
    },
  }
}

function toolFor({ sent, wrapped, checker }: AnswerSchema, take: (value: unknown) => void): OfferedTool {
  return {
    id: answerTool,
    source: { kind: "builtin" },
    schema: sent,
    definition: {
      description:
        "Gives the answer to the person's request. Call it once, when everything is done: the work ends with it. Its arguments are the answer, and nobody reads other words.",
      parameters: wrapped ? z.strictObject({ answer: checker }) : checker,
      access: "meta",
      async execute(args) {
        take(wrapped && isRecord(args) ? args.answer : args)
        return { title: "the answer", output: "This is the answer." }
      },
    },
  }
}

type Read = { ok: true; value: unknown } | { ok: false; problem: string }

/** The answer in a step's words: they are JSON, or have it in their last code fence. */
function readAnswer(parts: readonly Part[], shape: AnswerSchema): Read {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  const fenced = [...text.matchAll(/^```\w*\n([\s\S]*?)\n```[ \t]*$/gm)].at(-1)?.[1]
  const whole = parseJson(text.trim())
  const parsed = whole.ok || fenced === undefined ? whole : parseJson(fenced)
  if (!parsed.ok) return { ok: false, problem: text.trim() === "" ? "it is empty" : "it is no JSON" }
  return check(parsed.value, shape)
}

function check(value: unknown, { wrapped, checker }: AnswerSchema): Read {
  const inner = wrapped && isRecord(value) && Object.keys(value).join() === "answer" ? value.answer : value
  const checked = checker.safeParse(inner, { reportInput: true })
  if (checked.success) return { ok: true, value: checked.data }
  return { ok: false, problem: describeIssues(checked.error) }
}
