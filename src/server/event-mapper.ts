import type { EventOf, TackleEvent } from "../event/events.ts"
import type { Input } from "../schema/input.ts"
import type { Part, ToolPart } from "../schema/part.ts"

/** Converts the events of one session to the items of another protocol, until a run ends or waits for the user. */
export interface EventMapper<T> {
  /** Returns the items for an event. */
  convert(event: TackleEvent): T[]
  /**
   * Returns items for the permission requests and questions that were made while no client was connected. Call this
   * method after all stored events have been converted.
   */
  caughtUp(): T[]
  /** Ends the output with an error, for example because the client reads too slowly. Returns the last items. */
  failed(message: string): T[]
  /** True after the last item. */
  readonly ended: boolean
}

/** A text or reasoning part. */
export type StreamedText = Pick<Extract<Part, { type: "text" | "reasoning" }>, "id" | "type">

/** Formats the events of a run for a protocol. Each method returns the items to send. */
export interface Protocol<T> {
  /** Starts the output. */
  start(): T[]
  textStart(text: StreamedText): T[]
  textDelta(text: StreamedText, delta: string): T[]
  textEnd(text: StreamedText): T[]
  callStart(part: ToolPart): T[]
  /** Called when the arguments of a call are complete. */
  callInput(part: ToolPart): T[]
  /** Called when a call is `completed` or ends with `error`. */
  callResult(part: ToolPart): T[]
  /** Called at the start and end of a step, and when a failed attempt discards the step's parts. */
  step?(what: "start" | "finish" | "reset"): T[]
  /** Ends a call whose arguments never became complete. */
  callCancelled?(callID: string): T[]
  /**
   * Returns the items that end the output if permission requests or questions are waiting for the user, or an empty
   * array if none are. `knows` returns true if the client has the call.
   */
  waiting(state: { seq: number; knows(callID: string): boolean }): T[]
  /** Ends the output after a run. `error` is the reason if the run failed. */
  completed(event: EventOf<"run.completed">, state: { seq: number; error: string | undefined }): T[]
  /** Ends the output if the input was withdrawn. */
  withdrawn(state: { seq: number }): T[]
  /** Ends the output if the input cannot be delivered, or if the events cannot be continued. */
  failed(message: string, state: { seq: number }): T[]
}

/** Options for {@link createEventMapper}. */
export interface MapperOptions {
  /** Number of the last event that the client received. */
  after: number
  /** Id of an input. Events before the run that answers this input are ignored. Default: all events are used. */
  inputID?: string | undefined
  /** Id of the last message to omit. All earlier messages are omitted too. */
  since?: string
  /** Ids of the calls and results that the client already has. */
  known?: { calls: readonly string[]; results: readonly string[] }
}

/** Creates a mapper for a protocol. The items do not include the user's messages or calls made by other calls. */
export function createEventMapper<T>(
  protocol: Protocol<T>,
  { after, inputID, since = "", known = { calls: [], results: [] } }: MapperOptions,
): EventMapper<T> {
  const fromUser = new Set<string>()
  /** Incomplete texts, keyed by id, with the number of characters sent so far. */
  const texts = new Map<string, { text: StreamedText; length: number }>()
  const closedTexts = new Set<string>()
  const calls = new Map<string, ToolPart["state"]["status"]>()
  for (const id of known.calls) calls.set(id, "running")
  for (const id of known.results) calls.set(id, "completed")
  let delivered = inputID === undefined
  let seq = after
  let started = false
  let ended = false
  let error: string | undefined

  /** Returns the items. If the output has not started, adds the first items of the protocol before them. */
  function withStart(items: T[]): T[] {
    if (started || items.length === 0) return items
    started = true
    return [...protocol.start(), ...items]
  }

  function end(last: T[]): T[] {
    if (last.length === 0) return []
    ended = true
    const openTexts = [...texts.values()].flatMap(({ text }) => protocol.textEnd(text))
    const openCalls = [...calls].flatMap(([id, status]) =>
      status === "pending" ? (protocol.callCancelled?.(id) ?? []) : [],
    )
    return withStart([...openTexts, ...openCalls, ...last])
  }

  function waiting(): T[] {
    return end(protocol.waiting({ seq, knows: (callID) => calls.has(callID) }))
  }

  function textItems(part: Extract<Part, { type: "text" | "reasoning" }>): T[] {
    const { id, text, time } = part
    if (closedTexts.has(id)) return []
    const open = texts.get(id)
    const rest = text.slice(open?.length ?? 0)
    const items = [
      ...(open ? [] : protocol.textStart(part)),
      ...(rest === "" ? [] : protocol.textDelta(part, rest)),
    ]
    texts.set(id, { text: part, length: text.length })
    if (time?.end === undefined) return items
    texts.delete(id)
    closedTexts.add(id)
    return [...items, ...protocol.textEnd(part)]
  }

  function deltaItems({ partID, field, delta }: EventOf<"part.delta">): T[] {
    const open = texts.get(partID)
    if (field !== "text" || !open) return []
    open.length += delta.length
    return protocol.textDelta(open.text, delta)
  }

  function callItems(part: ToolPart): T[] {
    const { callID, state } = part
    const before = calls.get(callID)
    if (before === "completed" || before === "error") return []
    calls.set(callID, state.status)
    const isNew = before === undefined
    const hasInput = state.status !== "pending" && (isNew || before === "pending")
    const isFinal = state.status === "completed" || state.status === "error"
    return [
      ...(isNew ? protocol.callStart(part) : []),
      ...(hasInput ? protocol.callInput(part) : []),
      ...(isFinal ? protocol.callResult(part) : []),
    ]
  }

  function partItems(part: Part): T[] {
    if (fromUser.has(part.messageID) || part.messageID <= since) return []
    switch (part.type) {
      case "text":
      case "reasoning":
        return textItems(part)
      case "tool":
        // The result of the parent call contains the results of its calls.
        return part.parentCallID === undefined ? callItems(part) : []
      case "step-start":
        return protocol.step?.("start") ?? []
      case "step-finish":
        return protocol.step?.("finish") ?? []
      default:
        return []
    }
  }

  function inputItems({ state, problem }: Input): T[] {
    if (state === "promoted") delivered = true
    if (state === "withdrawn") return end(protocol.withdrawn({ seq }))
    return problem === undefined ? [] : end(protocol.failed(problem, { seq }))
  }

  function runItems(event: TackleEvent): T[] {
    switch (event.type) {
      case "part.updated":
        return withStart(partItems(event.part))
      case "part.delta":
        return deltaItems(event)
      case "part.removed":
        // These parts belong to a failed attempt, which the same step repeats.
        return withStart(protocol.step?.("reset") ?? [])
      case "permission.asked":
      case "question.asked":
        return waiting()
      case "session.error":
        error = event.error.message
        return []
      case "run.completed":
        return end(protocol.completed(event, { seq, error }))
      default:
        return []
    }
  }

  return {
    get ended() {
      return ended
    },
    caughtUp: () => (ended || !delivered ? [] : waiting()),
    failed: (message) => end(protocol.failed(message, { seq })),
    convert(event) {
      if (ended) return []
      seq = event.seq ?? seq
      switch (event.type) {
        case "message.created":
        case "message.updated":
          if (event.message.role === "user") fromUser.add(event.message.id)
          return []
        case "input.updated":
          return event.input.id === inputID ? inputItems(event.input) : []
        default:
          return delivered ? runItems(event) : []
      }
    },
  }
}
