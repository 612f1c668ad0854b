import { isRecord } from "../util/json.ts"

type Fields = Record<string, unknown>

/**
 * Repairs the odd fields in a chunk or an answer of the Chat Completions API, because the provider packages reject the
 * whole answer if one field has the wrong type. In the other APIs, repairs only the token counts. Changes the value in
 * place. Returns true if the value may have changed.
 */
export function repairAnswer(value: unknown): boolean {
  if (!isRecord(value)) return false
  const before = JSON.stringify(value)
  if (isChat(value)) repairChat(value)
  else for (const holder of [value, value.message, value.response]) if (isRecord(holder)) repairUsage(holder)
  return JSON.stringify(value) !== before
}

/** The events of other APIs have a type, or Google's fields. */
function isChat(value: Fields): boolean {
  if (Array.isArray(value.choices)) return true
  if (isRecord(value.error) || typeof value.error === "string") return false
  if (typeof value.object === "string" && value.object.startsWith("chat.")) return true
  if (typeof value.type === "string" || value.object === "response") return false
  return "choices" in value || "usage" in value
}

function repairChat(value: Fields): void {
  if (value.error === null) delete value.error
  keep(value, "id", textOf(value.id))
  keep(value, "model", textOf(value.model))
  keep(value, "created", numberOf(value.created))
  repairUsage(value)
  value.choices = recordsIn(value.choices).map((choice) => {
    keep(choice, "finish_reason", textOf(choice.finish_reason))
    if ("delta" in choice) repairMessage(choice, "delta")
    if ("message" in choice) repairMessage(choice, "message")
    return choice
  })
}

/** Repairs a message or its delta. Only in a message, each call needs a name and arguments. */
function repairMessage(choice: Fields, key: "delta" | "message"): void {
  const message: Fields = isRecord(choice[key]) ? choice[key] : {}
  choice[key] = message
  if ("role" in message) message.role = "assistant"
  if ("content" in message) message.content = contentOf(message.content)
  for (const name of ["reasoning_content", "reasoning"])
    if (name in message) keep(message, name, plainText(message[name]))
  if (!("tool_calls" in message)) return
  const calls = recordsIn(message.tool_calls).map((call, index) => repairCall(call, index, key))
  keep(message, "tool_calls", calls.length > 0 ? calls : undefined)
}

function repairCall(call: Fields, position: number, holder: "delta" | "message"): Fields {
  const isWhole = holder === "message"
  keep(call, "index", numberOf(call.index) ?? (isWhole ? position : undefined))
  keep(call, "id", textOf(call.id))
  const { name, arguments: given } = isRecord(call.function) ? call.function : call
  const named = typeof name === "string" && name.trim() !== "" ? name : undefined
  const input = typeof given === "string" || given == null ? given : JSON.stringify(given)
  call.function = isWhole
    ? { name: named ?? "invalid", arguments: input ?? "{}" }
    : { ...(typeof name === "string" && { name }), ...(input != null && { arguments: input }) }
  const { google } = isRecord(call.extra_content) ? call.extra_content : {}
  const isSigned = isRecord(google) && typeof google.thought_signature === "string"
  if (!isSigned) delete call.extra_content
  return call
}

/** Returns the content as the package reads it: text, a list of parts, or null. */
function contentOf(content: unknown): unknown {
  if (!Array.isArray(content)) return plainText(content) ?? null
  return content.flatMap((part) => {
    if (isRecord(part) && part.type === "thinking") return [part]
    const text = plainText(part)
    return text === undefined ? [] : [{ type: "text", text }]
  })
}

/** Returns the text in a value: text itself, a number, an object with a text, or a list of these. */
function plainText(value: unknown): string | undefined {
  if (Array.isArray(value)) return value.map((each) => plainText(each) ?? "").join("")
  if (isRecord(value)) return plainText(value.text ?? value.content ?? value.value)
  return textOf(value)
}

/** Repairs token counts. Removes values that are not counts. */
function repairUsage(holder: Fields): void {
  for (const key of ["usage", "usageMetadata"]) {
    const usage = holder[key]
    if (isRecord(usage)) repairCounts(usage)
    else delete holder[key]
  }
}

function repairCounts(usage: Fields): void {
  for (const [key, value] of Object.entries(usage)) {
    if (value !== null && /tokens?(?:count)?$/i.test(key)) usage[key] = numberOf(value) ?? 0
    else if (isRecord(value)) repairCounts(value)
    else if (/_details$/.test(key)) delete usage[key]
  }
}

/** Returns the objects in a list. A single object counts as a list. */
function recordsIn(value: unknown): Fields[] {
  return (Array.isArray(value) ? value : [value]).filter(isRecord)
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : undefined
}

function numberOf(value: unknown): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value
  return typeof number === "number" && Number.isFinite(number) ? number : undefined
}

/** Sets a field, or removes it if the value is undefined. Leaves null, which the packages accept. */
function keep(fields: Fields, key: string, value: unknown): void {
  if (fields[key] === null) return
  if (value === undefined) delete fields[key]
  else fields[key] = value
}
