import {
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  ProtocolErrorCode,
  parseJSONRPCMessage,
} from "@modelcontextprotocol/client"
import { isRecord, parseJson } from "../../util/json.ts"

/** Maximum length of a message from a server, in characters. A message of this length can contain several pictures. */
export const maxMessageLength = 10 * 1024 * 1024

/**
 * A connection's requests that have no reply yet. A reply that does not follow the protocol becomes an error reply, so
 * that the client does not wait for the time limit.
 */
export interface OpenRequests {
  sent(message: JSONRPCMessage | readonly JSONRPCMessage[]): void
  /** Returns the parsed message, or undefined if the text is not a valid message. */
  read(text: string): JSONRPCMessage | undefined
  /**
   * Returns an error reply for the request that an invalid message answers, or undefined if the message answers no
   * request. If `text` is only the beginning of the message, `length` is the length of the whole message.
   */
  reject(text: string, length?: number): JSONRPCErrorResponse | undefined
  /**
   * Returns an error reply for a request that will not get a reply, or undefined if the request already has a reply.
   */
  fail(id: unknown, why: string): JSONRPCErrorResponse | undefined
}

/** Creates an empty set of requests. */
export function createOpenRequests(): OpenRequests {
  const open = new Set<string | number>()

  function failed(id: string | number, why: string): JSONRPCErrorResponse {
    open.delete(id)
    return { jsonrpc: "2.0", id, error: { code: ProtocolErrorCode.InternalError, message: why } }
  }

  /** Returns the open request that a malformed reply answers. A reply without an id answers the only open request. */
  function requestOf(id: unknown): string | number | undefined {
    const known = [...open].find((each) => String(each) === String(id))
    return known ?? (open.size === 1 && (id === undefined || id === null) ? [...open][0] : undefined)
  }

  function malformed(id: unknown, why: string): JSONRPCErrorResponse | undefined {
    const request = requestOf(id)
    return request === undefined ? undefined : failed(request, why)
  }

  return {
    sent(message) {
      for (const each of [message].flat())
        if ("method" in each && "id" in each && each.id !== undefined) open.add(each.id)
    },
    read(text) {
      const parsed = parseJson(withoutMark(text))
      if (!parsed.ok) return undefined
      try {
        const message = parseJSONRPCMessage(parsed.value)
        if (!("method" in message)) {
          const request = requestOf(message.id)
          // A reply without an id cannot be delivered, so it counts as malformed.
          if (request !== undefined && message.id === undefined) return undefined
          if (request !== undefined) open.delete(request)
        }
        return message
      } catch {
        return undefined
      }
    },
    reject(text, length = text.length) {
      if (length > text.length) return malformed(idIn(text), tooLong(length))
      const parsed = parseJson(withoutMark(text))
      // Other text is output of the program, such as a welcome line.
      if (!parsed.ok)
        return text.trimStart().startsWith("{") ? malformed(idIn(text) ?? "", notJson) : undefined
      if (!isRecord(parsed.value) || "method" in parsed.value) return undefined
      // A line of a log can be JSON too.
      const { jsonrpc, id, result, error } = parsed.value
      if ([jsonrpc, result, error].every((field) => field === undefined)) return undefined
      if (jsonrpc === undefined && id === undefined) return undefined
      const why = isRecord(error) && typeof error.message === "string" ? error.message : faultOf(parsed.value)
      return malformed(id, why)
    },
    fail: (id, why) => [...open].filter((each) => each === id).map((each) => failed(each, why))[0],
  }
}

/** Removes a byte order mark at the beginning. */
function withoutMark(text: string): string {
  return text.replace(/^\uFEFF/, "")
}

const serverError = "This is an error in the server."
const notJson = `its reply is not valid JSON. ${serverError}`

function faultOf({ result, error }: Record<string, unknown>): string {
  const given = error === undefined ? { name: "result", value: result } : { name: "error", value: error }
  const expected =
    given.name === "result" ? "an object" : 'an object with a number "code" and a string "message"'
  const got = given.value === undefined ? "nothing" : JSON.stringify(given.value).slice(0, 60)
  return `its reply does not follow the protocol: "${given.name}" must be ${expected}, got ${got}. ${serverError}`
}

function tooLong(length: number): string {
  const mebibytes = (count: number) => `${(count / 1024 / 1024).toFixed(1)} MiB`
  return `its reply was discarded because its size is ${mebibytes(length)}, and the limit is ${mebibytes(maxMessageLength)}. Request less data at a time.`
}

/** Returns the id at the start of a message that cannot be parsed. Expects the usual order of keys. */
function idIn(text: string): string | undefined {
  return /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*"?([\w-]+)/.exec(text)?.[1]
}
