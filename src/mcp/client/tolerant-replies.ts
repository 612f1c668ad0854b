import { type JSONRPCMessage, specTypeSchemas, type Transport } from "@modelcontextprotocol/client"
import { isRecord } from "../../util/json.ts"

/**
 * Corrects replies of the server that deviate from the protocol in harmless ways, before the SDK rejects them: `null`
 * instead of an absent field, a tool without an input schema, and content that is not a list of known blocks, which
 * becomes text. Removes output schemas, because a result that does not match its schema is still a result. Call this
 * function before the client connects.
 */
export function readTolerantly(transport: Transport): void {
  const methods = new Map<unknown, string>()
  const send = transport.send.bind(transport)
  transport.send = (message, options) => {
    if ("method" in message && "id" in message) methods.set(message.id, message.method)
    return send(message, options)
  }
  let handler: Transport["onmessage"]
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => handler,
    set(given: Transport["onmessage"]) {
      handler = given && ((message, extra) => given(corrected(message), extra))
    },
  })

  function corrected<T extends JSONRPCMessage>(message: T): T {
    if ("method" in message || !("result" in message)) return message
    const method = methods.get(message.id)
    methods.delete(message.id)
    return method === undefined ? message : { ...message, result: correctReply(method, message.result) }
  }
}

/** Returns the result of a request in the form that the protocol defines, as far as its meaning is clear. */
function correctReply(method: string, result: Record<string, unknown>): Record<string, unknown> {
  const given = withoutNulls(result)
  if (method === "tools/list" && Array.isArray(given.tools))
    return { ...given, tools: given.tools.map(correctTool) }
  return method === "tools/call" || method === "tasks/result" ? correctResult(given) : given
}

function withoutNulls(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== null))
}

function correctTool(tool: unknown): unknown {
  if (!isRecord(tool)) return tool
  const { outputSchema: _, inputSchema = {}, ...rest } = withoutNulls(tool)
  return {
    ...rest,
    inputSchema: isRecord(inputSchema) ? { type: "object", ...withoutNulls(inputSchema) } : inputSchema,
  }
}

function correctResult({ content, structuredContent, isError, ...rest }: Record<string, unknown>) {
  const blocks = content === undefined ? [] : [content].flat().map(correctBlock)
  const isStructured = structuredContent === undefined || isRecord(structuredContent)
  return {
    ...rest,
    content: isStructured ? blocks : [...blocks, textBlock(structuredContent)],
    ...(isRecord(structuredContent) ? { structuredContent } : {}),
    ...(isError === undefined ? {} : { isError: isError === true || isError === "true" }),
  }
}

function correctBlock(block: unknown): unknown {
  const given = isRecord(block) ? withoutNulls(block) : block
  const checked = specTypeSchemas.ContentBlock["~standard"].validate(given)
  return checked instanceof Promise || checked.issues === undefined ? given : textBlock(given)
}

function textBlock(value: unknown): { type: "text"; text: string } {
  if (isRecord(value) && typeof value.text === "string") return { type: "text", text: value.text }
  return {
    type: "text",
    text: typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? ""),
  }
}
