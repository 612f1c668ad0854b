import * as z from "zod"
import { type AnswerSchema, readAnswerSchema } from "../model/answer-schema.ts"
import type { ModelInfo } from "../model/model.ts"
import type { OfferedTool } from "../registry/offered-tool.ts"
import type { Part } from "../schema/part.ts"
import { describeIssues } from "../tool/validate.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import type { AnswerCheck, Verdict } from "./answer-check.ts"

/** Name of the tool for a structured answer, for servers without a native answer format. */
const answerTool = "final_answer"

/** Maximum number of times the model is asked to correct its answer before the run fails. */
const maxRetries = 2

/** The structured answer that one run requires, and the progress toward it. */
export interface StructuredAnswer extends AnswerCheck {
  /** Instructions for the model, sent with the prompt. */
  readonly instructions: string
  /** The answer format for servers that support answer formats. */
  readonly format?: JsonSchema
  /** The tool to offer if the server does not support a format. */
  readonly tool?: OfferedTool
  /** The answer as one line of JSON. Undefined until the model has given a valid answer. */
  readonly answer: string | undefined
}

/**
 * Creates the requirement for an answer that matches a JSON Schema. Throws `UsageError` if the schema cannot be used.
 */
export function requireAnswer(schema: unknown, model: ModelInfo): StructuredAnswer {
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
      const message = `The answer did not match the schema after ${maxRetries + 1} attempts: ${problem.replace(/\.$/, "")}.`
      return { kind: "failed", error: { name: "output", message } }
    }
    const way = native
      ? "Answer only with the JSON"
      : `Call ${answerTool} with the answer, or answer only with the JSON`
    const message = `The answer is invalid: ${problem}. ${way}. The JSON must match this JSON Schema:\n${JSON.stringify(shape.sent)}`
    return { kind: "retry", message }
  }

  return {
    format: native ? shape.sent : undefined,
    tool: native ? undefined : toolFor(shape, take),
    instructions: native
      ? `When everything is done, answer only with JSON that matches this JSON Schema:\n${JSON.stringify(shape.sent)}`
      : `When everything is done, call ${answerTool} with the answer.`,
    get answer() {
      return answer
    },
    check({ parts }) {
      if (answer !== undefined) return { kind: "met" }
      const calls = parts.filter((part) => part.type === "tool")
      const refused = calls.find(({ tool }) => tool === answerTool)
      if (refused?.state.status === "error") {
        const verdict = fail(refused.state.error)
        // The result of the call already describes the problem.
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
        "Returns the answer to the user's request. Call this tool once, when everything is done. The call ends the run. The arguments are the answer; other text is ignored.",
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

/** Reads the answer from the whole text of a step, or from its last code block. */
function readAnswer(parts: readonly Part[], shape: AnswerSchema): Read {
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  const fenced = [...text.matchAll(/^```\w*\n([\s\S]*?)\n```[ \t]*$/gm)].at(-1)?.[1]
  const whole = parseJson(text.trim())
  const parsed = whole.ok || fenced === undefined ? whole : parseJson(fenced)
  if (!parsed.ok) return { ok: false, problem: text.trim() === "" ? "it is empty" : "it is not JSON" }
  return check(parsed.value, shape)
}

function check(value: unknown, { wrapped, checker }: AnswerSchema): Read {
  const inner = wrapped && isRecord(value) && Object.keys(value).join() === "answer" ? value.answer : value
  const checked = checker.safeParse(inner, { reportInput: true })
  if (checked.success) return { ok: true, value: checked.data }
  return { ok: false, problem: describeIssues(checked.error) }
}
