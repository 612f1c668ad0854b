import type { ModelRef } from "../schema/message.ts"
import { causeCode, errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { ProviderError, type ProviderErrorKind } from "./errors.ts"
import { modelName } from "./model.ts"
import { keyRemedy } from "./provider-table.ts"
import { readRetryAfter } from "./retry.ts"

/** The properties of an AI SDK error. Any of them may be missing. */
interface Report {
  name: string
  message: string
  /** HTTP status. */
  status: number | undefined
  url: string | undefined
  headers: Record<string, string>
  body: string
  /** The values of `type`, `code` and `status` in the provider's error object that are text. */
  labels: string
  /** System error code such as `ECONNREFUSED`. */
  systemCode: string | undefined
  retryable: boolean | undefined
}

/**
 * Converts an error from a provider package. If the error or its cause is a `ProviderError`, returns it unchanged.
 * Otherwise, the message names the model, what happened and, if it is known, the next step. `streamed` means that the
 * error occurred within an answer. In this case, an unknown error is retryable unless its labels match {@link refusal},
 * because the server had accepted the request.
 */
export function toProviderError(error: unknown, ref: ModelRef, { streamed = false } = {}): ProviderError {
  if (error instanceof ProviderError) return error
  const found = error instanceof Error && error.cause instanceof ProviderError ? error.cause : undefined
  if (found !== undefined) return found
  const report = readReport(error)
  if (streamed && !refusal.test(report.labels)) report.retryable ??= true
  const kind = kindOf(report)
  const retryAfterMs = readRetryAfter(report.headers, Date.now())
  const sentences = [
    `${modelName(ref)}: ${whatHappened(report, kind)}`,
    retryAfterMs === undefined ? "" : `The server asks you to wait ${duration(retryAfterMs)}.`,
    nextStep(report, kind, ref),
  ]
  return new ProviderError(sentences.filter((sentence) => sentence !== "").join(" "), {
    kind,
    retryable: isRetryable(report, kind),
    status: report.status,
    retryAfterMs,
    // Omit the error itself, since it contains the whole request.
    cause: error instanceof Error ? error.cause : undefined,
  })
}

function readReport(error: unknown): Report {
  const fields = typeof error === "object" && error !== null ? (error as Record<string, unknown>) : {}
  const data = isRecord(fields.data) ? fields.data : {}
  const inner = isRecord(data.error) ? data.error : fields
  const code = [inner.code, inner.status].map(Number).find((value) => value >= 400 && value < 600)
  const message = typeof fields.message === "string" && fields.message !== "" ? fields.message : undefined
  return {
    name: typeof fields.name === "string" ? fields.name : "",
    message: message ?? errorMessage(error),
    status: typeof fields.statusCode === "number" ? fields.statusCode : code,
    url: typeof fields.url === "string" ? fields.url : undefined,
    headers: isRecord(fields.responseHeaders) ? (fields.responseHeaders as Record<string, string>) : {},
    body: typeof fields.responseBody === "string" ? fields.responseBody.slice(0, maxBodyLength) : "",
    labels: [inner.type, inner.code, inner.status].filter((label) => typeof label === "string").join(" "),
    systemCode: causeCode(error),
    retryable: typeof fields.isRetryable === "boolean" ? fields.isRetryable : undefined,
  }
}

/** Matches the labels of errors that would occur again if the request were repeated. */
const refusal = /invalid_request|not_found|unsupported|content_(?:policy|filter)|billing|quota|permission/i

/** Matches the messages with which providers and local servers reject a prompt that is too long. */
const overflow =
  /context[ _]?(length|window|size|limit)|maximum context|too many (input )?tokens|(prompt|input|request|messages?)( is| are|_is)? too (long|large)|exceeds? (the |this )?(available |model'?s? )?(context|maximum (input|number of) tokens)|reduce the length|token (count|limit).{0,20}exceed/i

/** Statuses with which servers reject a prompt that is too long. */
const overflowStatuses: readonly (number | undefined)[] = [400, 413, 422]

/**
 * Matches texts about the length of a prompt, in either order, within one sentence. Covers servers whose texts
 * {@link overflow} does not contain.
 */
const promptLength =
  /\b(?:tokens?|context|prompts?|inputs?|messages|conversation)\b[^.]{0,80}(?:exceed|too (?:long|large|many|big)|longer than|larger than|greater than|must be <|\blimit\b|\bmax(?:imum)?\b|\blength should\b)|(?:exceed|too (?:long|many)|longer than|larger than|\bmax(?:imum)?\b)[^.]{0,80}\b(?:tokens?|context|prompts?|inputs?|messages|conversation)\b/i

/** Matches texts about other limits, which a shorter conversation does not help. */
const otherLimit =
  /\bmax(?:imum)?_?(?:completion_|output_)?tokens\b|\b(?:output|completion|budget) tokens\b|budget_tokens|maxOutputTokens|quota|credit|balance|billing|\bapi[ _-]?(?:key|token)|access token|per (?:minute|hour|day)|\b(?:image|audio|video|tools|schema|function)s?\b|temperature|top_p/i

function isOverflow(status: number | undefined, text: string): boolean {
  if (status !== undefined && status < 400) return false
  if (overflow.test(text)) return true
  return overflowStatuses.includes(status) && promptLength.test(text) && !otherLimit.test(text)
}

const certificate = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ERR_TLS)/

/** Returns the kind of an error. The checks are in order of precedence. */
function kindOf(report: Report): ProviderErrorKind {
  const { status, name } = report
  const text = `${report.message} ${report.labels} ${report.body}`
  if (status === 401 || status === 402 || status === 403 || name === "AI_LoadAPIKeyError") return "auth"
  if (/\b(authentication|permission)_error\b|invalid_api_key/.test(report.labels)) return "auth"
  if (status === 429 || /rate_?limit|insufficient_quota/i.test(report.labels)) return "rate-limit"
  if (status === 413 || isOverflow(status, text)) return "context-overflow"
  if (
    status === 408 ||
    status === 504 ||
    name === "TimeoutError" ||
    /TIMEOUT|ETIMEDOUT/.test(report.systemCode ?? "")
  )
    return "timeout"
  if (status === 503 || status === 529 || /overloaded/i.test(text)) return "overloaded"
  if (name === "AbortError") return "aborted"
  if (report.systemCode !== undefined && (status === undefined || status < 400)) return "network"
  if (status !== undefined && status < 400) return "bad-response"
  return /^AI_(JSONParse|TypeValidation|InvalidResponseData|EmptyResponseBody)Error$/.test(name)
    ? "bad-response"
    : "unknown"
}

function isRetryable(report: Report, kind: ProviderErrorKind): boolean {
  switch (kind) {
    case "auth":
    case "context-overflow":
      return false
    case "rate-limit":
      return !/insufficient_quota/.test(`${report.labels} ${report.body}`)
    case "network":
      return !certificate.test(report.systemCode ?? "") && !isOffLocally(report) && !isUnknownHost(report)
    case "overloaded":
    case "timeout":
    case "bad-response":
    case "aborted":
      return true
    case "unknown":
      return report.status !== undefined
        ? report.status >= 500 || report.status === 409
        : report.retryable === true
  }
}

function whatHappened(report: Report, kind: ProviderErrorKind): string {
  const host = hostOf(report.url)
  if (report.status !== undefined && report.status >= 400) {
    return `${host} returned ${report.status}: ${sentence(serverMessage(report.body, report.message))}`
  }
  if (isBrokenOff(report, kind)) return `${host} ended its answer early (${report.systemCode}).`
  if (kind === "network") return `the connection to ${host} failed: ${sentence(shorten(report.message))}`
  if (kind === "timeout") return `the request to ${host} timed out: ${sentence(shorten(report.message))}`
  if (kind === "bad-response") {
    return `${host} sent an invalid answer: ${sentence(shorten(report.message))}`
  }
  return sentence(shorten(report.message))
}

function nextStep(report: Report, kind: ProviderErrorKind, ref: ModelRef): string {
  if (refusesTools(report.status, `${report.message} ${report.body}`)) {
    return `To have tools described in the prompt, set provider.${ref.providerID}.models.${ref.modelID}.toolCalling to "synthetic".`
  }
  switch (kind) {
    case "auth":
      return report.status === 402 ? "Check your account balance." : keyRemedy(ref.providerID)
    case "context-overflow":
      return "The conversation is too long for this model. Compact it, start a new session, or use a model with a larger context window."
    case "network":
      if (certificate.test(report.systemCode ?? "")) {
        return "If your network has its own certificate authority, set NODE_EXTRA_CA_CERTS to the path of its certificate."
      }
      if (isUnknownHost(report)) {
        return `Check the host name in provider.${ref.providerID}.options.baseURL, and your network connection.`
      }
      if (isBrokenOff(report, kind)) return ""
      return isOffLocally(report)
        ? "Check that the model server is running."
        : "Check your network connection and the proxy settings."
    case "bad-response":
      return `Check provider.${ref.providerID}.options.baseURL.`
    default:
      return report.status === 404
        ? `Check the model's name and provider.${ref.providerID}.options.baseURL (it usually ends in /v1).`
        : ""
  }
}

/**
 * Returns true if the connection failed after the answer began. In this case, the address and the network are correct.
 */
function isBrokenOff(report: Report, kind: ProviderErrorKind): boolean {
  return kind === "network" && report.status !== undefined
}

/**
 * Returns true if the server should run on this machine, but its port is closed. Retrying does not help, because the
 * user has to start the server.
 */
function isOffLocally(report: Report): boolean {
  return report.systemCode === "ECONNREFUSED" && /^(127\.|localhost|\[::1\])/.test(hostOf(report.url))
}

/** Returns true if the host name cannot be resolved. */
function isUnknownHost(report: Report): boolean {
  return report.systemCode === "ENOTFOUND"
}

function hostOf(url: string | undefined): string {
  return url !== undefined && URL.canParse(url) ? new URL(url).host : "the server"
}

/** Maximum number of characters of a response body to search. */
const maxBodyLength = 8_192

function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text || "no reason given"}.`
}

function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}

/** A pattern for the error message that servers send if they do not support tools. */
interface Refusal {
  /** Servers that send the message. */
  server: string
  /** HTTP status codes that servers send with the message. */
  status: readonly number[]
  text: RegExp
}

/**
 * Refusals by known servers, taken from their source code and from bug reports. The patterns are narrow, since an error
 * about the schema of one tool must not match.
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

/** Returns true if a response with this status and text means that the server rejects tools. */
export function refusesTools(status: number | undefined, text: string): boolean {
  if (status === undefined) return false
  return refusals.some((row) => row.status.includes(status) && row.text.test(text))
}

/**
 * Returns the server's message if an AI SDK error means that the server rejects tools, or undefined for other errors.
 */
export function toolRefusal(error: unknown): string | undefined {
  if (!isRecord(error)) return undefined
  const { statusCode, responseBody, message } = error
  const status = typeof statusCode === "number" ? statusCode : undefined
  const said = typeof message === "string" ? message : ""
  const body = typeof responseBody === "string" ? responseBody.slice(0, maxBodyLength) : ""
  return refusesTools(status, `${said}\n${body}`) ? serverMessage(body, said) : undefined
}

const maxLength = 300

/**
 * Returns the server's error message on one line, shortened to 300 characters. Reads the message of an error object or
 * the title of an HTML page, or else the whole body. Returns `otherwise` unchanged if the body is empty.
 */
function serverMessage(body: string, otherwise: string): string {
  const text = body.trim()
  if (text === "") return otherwise
  if (text.startsWith("<")) {
    const title = /<(title|h1)[^>]*>([^<]+)</i.exec(text)?.[2]
    return shorten(title ?? text.replaceAll(/<[^>]*>/g, " "))
  }
  const json = parseJson(text)
  return shorten((json.ok ? messageOf(json.value) : undefined) ?? text)
}

/** Returns the message of an error object in any of the usual formats. */
function messageOf(value: unknown): string | undefined {
  if (typeof value === "string") return value
  if (Array.isArray(value)) return messageOf(value[0])
  if (!isRecord(value)) return undefined
  return messageOf(value.error) ?? messageOf(value.message) ?? messageOf(value.detail) ?? messageOf(value.msg)
}

/** Joins the lines of the text and shortens it to 300 characters. */
function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim()
  return line.length > maxLength ? `${line.slice(0, maxLength)}…` : line
}
