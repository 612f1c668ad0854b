import type {
  ElicitRequestFormParams,
  ElicitResult,
  PrimitiveSchemaDefinition,
} from "@modelcontextprotocol/client"
import * as z from "zod"
import type { Question } from "../../schema/question.ts"
import type { AskUser, FormAnswer, ToolContext } from "../../tool/context.ts"
import { own } from "../../util/json.ts"
import { counted } from "../../util/words.ts"

/** Maximum number of times that the user is asked for valid answers. */
const maxAttempts = 3

/**
 * Asks the user to fill in a server's form. Shows the form if the host supports forms. Otherwise, asks one question per
 * field: an empty answer selects the default, and a question with an invalid answer is repeated. Declines if no user is
 * available. Cancels if the user dismisses the questions or if answers are still invalid after the last attempt. Throws
 * the errors of `form` and `question`, which reject if the signal aborts.
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
  const asking: AskUser = (questions) => ask(questions, undefined, signal)
  return fields.length === 0 ? confirm(lead, asking) : fillIn(lead, fields, asking)
}

/** Drops values of types that form fields cannot have. The server validates the remaining values. */
function toElicitResult({ action, content = {} }: FormAnswer): ElicitResult {
  if (action !== "accept") return { action }
  const fitting = Object.entries(content).flatMap(([name, value]) =>
    isFieldValue(value) ? [[name, value] as const] : [],
  )
  return { action, content: Object.fromEntries(fitting) }
}

/** Asks for consent to a form without fields. */
async function confirm(question: string, ask: AskUser): Promise<ElicitResult> {
  const answers = await ask([{ question, options: [{ label: "Accept" }, { label: "Decline" }] }])
  const answer = answers?.[0]?.[0]
  if (answer === undefined) return { action: "cancel" }
  return answer === "Accept" ? { action: "accept", content: {} } : { action: "decline" }
}

async function fillIn(lead: string, fields: readonly FormField[], ask: AskUser): Promise<ElicitResult> {
  const content: Record<string, FieldValue> = {}
  let open: { field: FormField; problem?: string }[] = fields.map((field) => ({ field }))
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const answers = await ask(open.map((entry, index) => toQuestion(entry, index === 0 ? lead : undefined)))
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

function toQuestion(
  { field, problem }: { field: FormField; problem?: string },
  lead: string | undefined,
): Question {
  const lines = [lead, field.question.question, problem === undefined ? undefined : `Please ${problem}.`]
  return { ...field.question, question: lines.filter((line) => line !== undefined).join("\n") }
}

function readAnswer(field: FormField, answer: readonly string[]) {
  if (answer.length > 0) return field.read(answer)
  if (field.preset !== undefined || !field.required) return { value: field.preset }
  return { problem: "enter a value, because this field is required" }
}

type FieldValue = string | number | boolean | string[]

function isFieldValue(value: unknown): value is FieldValue {
  if (Array.isArray(value)) return value.every((entry) => typeof entry === "string")
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
}

/** The value of an answer, or the reason why the answer is invalid. */
type Reading<T> = { value: T } | { problem: string }

/** A field of a server's form, presented as a question to the user. */
export interface FormField {
  name: string
  required: boolean
  /** The value that an empty answer selects. */
  preset?: FieldValue
  question: Question
  /** Parses an answer, which has at least one entry. */
  read(answer: readonly string[]): Reading<FieldValue>
}

/** Maximum number of options in a question. For a field with more choices, the user types the answer. */
const maxOptions = 20

/** Maximum length of a question's header, in characters. */
const maxHeader = 60

/** Converts a form field of the protocol: text, number, boolean, single choice or multiple choice. */
export function formField(name: string, schema: PrimitiveSchemaDefinition, required: boolean): FormField {
  const { options, multiple, hint, read } = kindOf(schema)
  const title = schema.title ?? name
  const preset = schema.default as FieldValue | undefined
  const notes = [
    hint,
    preset === undefined ? undefined : `default: ${shown(preset)}`,
    preset === undefined && !required ? "optional" : undefined,
  ].filter((note) => note !== undefined)
  const text = [title, schema.description].filter(Boolean).join(": ")
  const showsOptions = options !== undefined && options.length <= maxOptions
  return {
    name,
    required,
    preset,
    question: {
      question: notes.length > 0 ? `${text} (${notes.join("; ")})` : text,
      header: title.slice(0, maxHeader),
      options: showsOptions ? options.map(({ label }) => ({ label })) : undefined,
      multiple,
    },
    read,
  }
}

interface FieldKind {
  options?: Choice[]
  multiple?: true
  hint?: string
  read: FormField["read"]
}

interface Choice {
  value: string
  label: string
}

function kindOf(schema: PrimitiveSchemaDefinition): FieldKind {
  if (schema.type === "boolean") return { options: yesOrNo, read: (answer) => readBoolean(answer) }
  if (isNumber(schema)) return numberKind(schema)
  if (schema.type === "array") return multipleKind(schema)
  const choices = choicesOf(schema)
  return choices
    ? { options: choices, hint: hintOf(choices), read: (answer) => readChoice(answer, choices) }
    : textKind(schema)
}

const yesOrNo: Choice[] = ["Yes", "No"].map((label) => ({ value: label, label }))

function readBoolean([answer = ""]: readonly string[]): Reading<boolean> {
  if (/^(yes|y|true)$/i.test(answer.trim())) return { value: true }
  return /^(no|n|false)$/i.test(answer.trim()) ? { value: false } : { problem: "answer Yes or No" }
}

type NumberSchema = Extract<PrimitiveSchemaDefinition, { minimum?: unknown }>

function isNumber(schema: PrimitiveSchemaDefinition): schema is NumberSchema {
  return schema.type === "number" || schema.type === "integer"
}

function numberKind({ type, minimum, maximum }: NumberSchema): FieldKind {
  const low = minimum ?? Number.NEGATIVE_INFINITY
  const high = maximum ?? Number.POSITIVE_INFINITY
  const hint = `${type === "integer" ? "a whole number" : "a number"}${boundsText(minimum, maximum)}`
  return {
    hint,
    read([answer = ""]) {
      const value = answer.trim() === "" ? Number.NaN : Number(answer)
      const fits = value >= low && value <= high && (type === "number" || Number.isInteger(value))
      return fits ? { value } : { problem: `enter ${hint}` }
    },
  }
}

function boundsText(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  if (minimum !== undefined) return ` of at least ${minimum}`
  return maximum === undefined ? "" : ` of at most ${maximum}`
}

type MultipleSchema = Extract<PrimitiveSchemaDefinition, { type: "array" }>

function multipleKind({
  items,
  minItems = 0,
  maxItems = Number.POSITIVE_INFINITY,
}: MultipleSchema): FieldKind {
  const choices =
    "anyOf" in items
      ? items.anyOf.map(({ const: value, title }) => ({ value, label: title }))
      : items.enum.map((value) => ({ value, label: value }))
  return {
    options: choices,
    multiple: true,
    hint: hintOf(choices, "one or more of"),
    read(answer) {
      const read = answer.map((entry) => readChoice([entry], choices))
      const wrong = read.find((each) => "problem" in each)
      if (wrong) return wrong
      const value = read.flatMap((each) => ("value" in each ? [each.value] : []))
      if (value.length < minItems) return { problem: `choose at least ${counted(minItems, "option")}` }
      return value.length > maxItems
        ? { problem: `choose at most ${counted(maxItems, "option")}` }
        : { value }
    },
  }
}

type TextSchema = Extract<PrimitiveSchemaDefinition, { type: "string" }>

function choicesOf(schema: TextSchema): Choice[] | undefined {
  if ("oneOf" in schema) return schema.oneOf.map(({ const: value, title }) => ({ value, label: title }))
  if (!("enum" in schema)) return undefined
  const labels = "enumNames" in schema ? schema.enumNames : undefined
  return schema.enum.map((value, index) => ({ value, label: labels?.[index] ?? value }))
}

function hintOf(choices: readonly Choice[], which = "one of"): string | undefined {
  return choices.length > maxOptions ? `${which} ${choices.map(({ label }) => label).join(", ")}` : undefined
}

function readChoice([answer = ""]: readonly string[], choices: readonly Choice[]): Reading<string> {
  const found = choices.find(({ value, label }) => label === answer || value === answer)
  return found
    ? { value: found.value }
    : { problem: `choose one of the options ("${answer}" is not an option)` }
}

const formats = {
  email: { check: z.email(), name: "an email address" },
  uri: { check: z.url(), name: "a URL such as https://example.com" },
  date: { check: z.iso.date(), name: "a date such as 2026-01-31" },
  "date-time": {
    check: z.iso.datetime({ offset: true }),
    name: "a date and time such as 2026-01-31T12:00:00Z",
  },
}

function textKind(schema: TextSchema): FieldKind {
  const {
    format,
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
  } = "format" in schema || "minLength" in schema || "maxLength" in schema ? schema : {}
  const known = format === undefined ? undefined : own(formats, format)
  return {
    hint: known?.name,
    read([answer = ""]) {
      if (known && !known.check.safeParse(answer).success) return { problem: `enter ${known.name}` }
      if (answer.length < minLength) return { problem: `enter at least ${counted(minLength, "character")}` }
      return answer.length > maxLength
        ? { problem: `enter at most ${counted(maxLength, "character")}` }
        : { value: answer }
    },
  }
}

function shown(value: FieldValue): string {
  if (typeof value === "boolean") return value ? "Yes" : "No"
  return Array.isArray(value) ? value.join(", ") : String(value)
}
