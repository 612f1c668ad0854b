import type { PrimitiveSchemaDefinition } from "@modelcontextprotocol/client"
import * as z from "zod"
import type { Question } from "../../schema/question.ts"

/** What a field of a form may hold. */
export type FieldValue = string | number | boolean | string[]

/** True for what a field can hold. */
export function isFieldValue(value: unknown): value is FieldValue {
  if (Array.isArray(value)) return value.every((entry) => typeof entry === "string")
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
}

/** What the words of an answer mean, or what is wrong with them. */
type Reading<T> = { value: T } | { problem: string }

/** A field of a server's form, as a question to a person. */
export interface FormField {
  name: string
  required: boolean
  /** Stands for an answer that was left open. */
  preset?: FieldValue
  question: Question
  /** There is at least one word. */
  read(words: readonly string[]): Reading<FieldValue>
}

/** More options are not shown: the person writes one. */
const shownOptions = 20

/** How long a question's header may be, in characters. */
const headerLength = 60

/** A field of the protocol's forms: a text, a number, a yes or no, or a choice of one or several. */
export function formField(name: string, schema: PrimitiveSchemaDefinition, required: boolean): FormField {
  const { options, multiple, hint, read } = kindOf(schema)
  const title = schema.title ?? name
  const preset = schema.default as FieldValue | undefined
  const notes = [
    hint,
    preset === undefined ? undefined : `left open: ${shown(preset)}`,
    preset === undefined && !required ? "may be left open" : undefined,
  ].filter((note) => note !== undefined)
  const words = [title, schema.description].filter(Boolean).join(": ")
  return {
    name,
    required,
    ...(preset === undefined ? {} : { preset }),
    question: {
      question: notes.length > 0 ? `${words} (${notes.join("; ")})` : words,
      header: title.slice(0, headerLength),
      ...(options === undefined || options.length > shownOptions
        ? {}
        : { options: options.map(({ label }) => ({ label })) }),
      ...(multiple ? { multiple } : {}),
    },
    read,
  }
}

interface FieldKind {
  options?: Choice[]
  multiple?: boolean
  hint?: string
  read: FormField["read"]
}

interface Choice {
  value: string
  label: string
}

function kindOf(schema: PrimitiveSchemaDefinition): FieldKind {
  if (schema.type === "boolean") return { options: yesOrNo, read: (words) => readBoolean(words) }
  if (isNumber(schema)) return numberKind(schema)
  if (schema.type === "array") return severalKind(schema)
  const choices = choicesOf(schema)
  return choices
    ? { options: choices, ...hintOf(choices), read: (words) => readChoice(words, choices) }
    : textKind(schema)
}

const yesOrNo: Choice[] = ["Yes", "No"].map((label) => ({ value: label, label }))

function readBoolean([word = ""]: readonly string[]): Reading<boolean> {
  if (/^(yes|y|true)$/i.test(word.trim())) return { value: true }
  return /^(no|n|false)$/i.test(word.trim()) ? { value: false } : { problem: "answer Yes or No" }
}

type NumberSchema = Extract<PrimitiveSchemaDefinition, { minimum?: unknown }>

function isNumber(schema: PrimitiveSchemaDefinition): schema is NumberSchema {
  return schema.type === "number" || schema.type === "integer"
}

function numberKind({ type, minimum, maximum }: NumberSchema): FieldKind {
  const low = minimum ?? Number.NEGATIVE_INFINITY
  const high = maximum ?? Number.POSITIVE_INFINITY
  const bounds = [
    minimum === undefined ? "" : ` from ${minimum}`,
    maximum === undefined ? "" : ` to ${maximum}`,
  ].join("")
  const hint = `${type === "integer" ? "a whole number" : "a number"}${bounds}`
  return {
    hint,
    read([word = ""]) {
      const value = word.trim() === "" ? Number.NaN : Number(word)
      const fits = value >= low && value <= high && (type === "number" || Number.isInteger(value))
      return fits ? { value } : { problem: `give ${hint}` }
    },
  }
}

type SeveralSchema = Extract<PrimitiveSchemaDefinition, { type: "array" }>

function severalKind({ items, minItems = 0, maxItems = Number.POSITIVE_INFINITY }: SeveralSchema): FieldKind {
  const choices =
    "anyOf" in items
      ? items.anyOf.map(({ const: value, title }) => ({ value, label: title }))
      : items.enum.map((value) => ({ value, label: value }))
  return {
    options: choices,
    multiple: true,
    ...hintOf(choices),
    read(words) {
      const read = words.map((word) => readChoice([word], choices))
      const wrong = read.find((each) => "problem" in each)
      if (wrong) return wrong
      const value = read.flatMap((each) => ("value" in each ? [each.value] : []))
      if (value.length < minItems) return { problem: `choose at least ${minItems}` }
      return value.length > maxItems ? { problem: `choose at most ${maxItems}` } : { value }
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

function hintOf(choices: readonly Choice[]): { hint?: string } {
  return choices.length > shownOptions ? { hint: `of ${choices.map(({ label }) => label).join(", ")}` } : {}
}

function readChoice([word = ""]: readonly string[], choices: readonly Choice[]): Reading<string> {
  const found = choices.find(({ value, label }) => label === word || value === word)
  return found ? { value: found.value } : { problem: `"${word}" is none of the choices` }
}

const formats = {
  email: { check: z.email(), name: "an e-mail address" },
  uri: { check: z.url(), name: "an address such as https://example.com" },
  date: { check: z.iso.date(), name: "a date such as 2026-01-31" },
  "date-time": { check: z.iso.datetime({ offset: true }), name: "a time such as 2026-01-31T12:00:00Z" },
}

function textKind(schema: TextSchema): FieldKind {
  const {
    format,
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
  } = "format" in schema || "minLength" in schema || "maxLength" in schema ? schema : {}
  const known = format === undefined ? undefined : formats[format]
  return {
    ...(known ? { hint: known.name } : {}),
    read([word = ""]) {
      if (known && !known.check.safeParse(word).success) return { problem: `give ${known.name}` }
      if (word.length < minLength) return { problem: `give at least ${minLength} characters` }
      return word.length > maxLength ? { problem: `give at most ${maxLength} characters` } : { value: word }
    },
  }
}

function shown(value: FieldValue): string {
  if (typeof value === "boolean") return value ? "Yes" : "No"
  return Array.isArray(value) ? value.join(", ") : String(value)
}
