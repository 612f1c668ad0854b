import { isRecord } from "../util/json.ts"
import { serverWords } from "./server-words.ts"

/** How a server says that it takes no tools. */
interface Refusal {
  /** Whose words they are. */
  server: string
  /** Of the answer. Empty: any error. */
  status: readonly number[]
  text: RegExp
}

/**
 * The words of known servers, as they stand in their sources and in reports of their users. Narrow on purpose: an error
 * about one tool's schema is none of these.
 */
const refusals: readonly Refusal[] = [
  { server: "Ollama", status: [400], text: /does not support tools/i },
  { server: "llama.cpp", status: [400, 500, 501], text: /tools param requires --jinja/i },
  { server: "llama.cpp, older", status: [400, 500, 501], text: /unsupported param: tools/i },
  { server: "vLLM, SGLang", status: [400], text: /--enable-auto-tool-choice|--tool-call-parser/i },
  { server: "OpenRouter", status: [400, 404], text: /no endpoints found that support tool use/i },
  {
    server: "OpenAI, Groq, Azure",
    status: [400],
    text: /['"`]?(tools|tool calling|function calling|functions)['"`]? (is|are) not (supported|enabled|available) (in|with|for|by) (this|the) model/i,
  },
  {
    server: "DeepInfra, DeepSeek, Mistral, LM Studio",
    status: [400, 405, 422, 501],
    text: /(tool calling|tool use|function calling|tools?) (is|are) not (supported|enabled)|(does not|doesn't|do not) support (tool calling|tool use|function calling|tools\b)/i,
  },
  {
    server: "strict servers",
    status: [400, 422],
    text: /(unrecognized|unknown|unexpected|unsupported) (request )?(argument|parameter|param|field|key)s?( supplied)?:? ['"`]?tools?(_choice)?\b/i,
  },
  {
    server: "FastAPI",
    status: [400, 422],
    text: /"loc":\s*\["body",\s*"tools?(_choice)?"\][^}]*(extra_forbidden|not permitted)|extra_forbidden"[^}]*"loc":\s*\["body",\s*"tools?(_choice)?"\]/i,
  },
]

/** True where an answer of this status and text refuses tools as such. */
export function refusesTools(status: number | undefined, text: string): boolean {
  if (status === undefined) return false
  return refusals.some((row) => row.status.includes(status) && row.text.test(text))
}

/** What the server said, where what a package of the AI SDK threw is a refusal of tools; else undefined. */
export function toolRefusal(error: unknown): string | undefined {
  if (!isRecord(error)) return undefined
  const { statusCode, responseBody, message } = error
  const status = typeof statusCode === "number" ? statusCode : undefined
  const said = typeof message === "string" ? message : ""
  const body = typeof responseBody === "string" ? responseBody.slice(0, longestBody) : ""
  return refusesTools(status, `${said}\n${body}`) ? serverWords(body, said) : undefined
}

const longestBody = 8_192
