import { argumentsText, pieces, type Reply, usageOf } from "../../src/testing/reply.ts"
import { type Asked, dataEvent, type EventStream, type WireFormat } from "../../src/testing/wire-format.ts"

/** Wire format of Gemini's generateContent, with text and function calls. Each call arrives as a whole. */
export const geminiFormat: WireFormat = {
  accepts: (method, path) =>
    method === "POST" && /^\/v1beta\/models\/[^/]+:(stream)?[gG]enerateContent/.test(path),
  streams: (asked) => asked.path.includes(":streamGenerateContent"),
  events,
  whole: (reply, asked) => JSON.stringify({ ...chunk(parts(reply), asked, "STOP"), ...usage(reply, asked) }),
  error: (message) => JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } }),
}

/** Returns the position in the script: the number of answers with a call, or undefined for a request without tools. */
export function geminiTurn(body: Record<string, unknown>): number | undefined {
  if (!Array.isArray(body.tools) || body.tools.length === 0 || !Array.isArray(body.contents)) return undefined
  const contents: { role?: string; parts?: object[] }[] = body.contents
  return contents.filter(
    ({ role, parts }) => role === "model" && parts?.some((part) => "functionCall" in part),
  ).length
}

function events(reply: Reply, asked: Asked): EventStream {
  const content = parts(reply).map((part) => dataEvent(chunk([part], asked)))
  return { content, ending: [dataEvent({ ...chunk([{ text: "" }], asked, "STOP"), ...usage(reply, asked) })] }
}

function parts(reply: Reply): object[] {
  return [
    ...pieces(reply.text ?? "", reply.pieceSize).map((text) => ({ text })),
    ...(reply.calls ?? []).map((call) => ({
      functionCall: { name: call.name, args: JSON.parse(argumentsText(call)) },
    })),
  ]
}

function chunk(content: object[], asked: Asked, finishReason?: string) {
  const candidate = {
    index: 0,
    content: { role: "model", parts: content },
    finishReason: finishReason || undefined,
  }
  return { candidates: [candidate], modelVersion: "m", responseId: `resp_${asked.index}` }
}

function usage(reply: Reply, asked: Asked) {
  const { input, output } = usageOf(reply, asked.bytes)
  return {
    usageMetadata: { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output },
  }
}
