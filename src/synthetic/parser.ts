import type { CallSink, DialectName, MalformedCall, Opening, ReadCall, SyntheticTool } from "./dialect.ts"
import { openingsFor } from "./dialects.ts"
import { disownsCall } from "./mention.ts"
import {
  charAt,
  createSource,
  findAny,
  forget,
  grow,
  type Reading,
  type Source,
  slice,
  takeWhile,
} from "./source.ts"
import { createTextContext, type TextContext } from "./text-context.ts"

/** An event of a parsed answer. Events come in the order of the answer. */
export type ParserEvent =
  | { type: "text"; text: string }
  /** Begins a call. All events up to the next `call` or `malformed` belong to the call. */
  | { type: "call-start"; tool: string }
  /** Part of a call's input. The deltas add up to the input unless the input was repaired. */
  | { type: "call-delta"; delta: string }
  | ({ type: "call" } & ReadCall)
  | ({ type: "malformed" } & MalformedCall)

/** Reads calls from text that arrives in pieces. */
export interface CallParser {
  /**
   * Adds text and returns the new events. Holds back text that may begin a call. Also holds back a short call until the
   * text after it shows whether it is meant as a call.
   */
  push(text: string): ParserEvent[]
  /** Ends the text and returns the remaining events. `cut` means that the answer reached its token limit. */
  end(options?: { cut?: boolean }): ParserEvent[]
}

/**
 * Creates a parser for one answer. The result does not depend on how the text is split into pieces. Drops white space
 * next to a call. A call is treated as text if it is part of code, a quotation, a closed thinking block, an example or
 * a sentence, or if it repeats a part of one of the `quotable` texts. A call in a thinking block that is never closed
 * is treated as a call, unless the answer was cut off.
 */
export function createCallParser(options: {
  tools: readonly SyntheticTool[]
  /** The dialect that the model was asked to use. */
  dialect: DialectName
  /** Texts that the model has read, such as tool results. A call that repeats a part of one of them is a quotation. */
  quotable?: readonly string[]
}): CallParser {
  const source = createSource()
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const output = createOutput()
  const quotations = createQuotations(options.quotable ?? [])
  const run = scan({
    source,
    tools,
    openings: openingsFor(options.dialect, options.tools),
    output,
    quotations,
  })
  return {
    push(text) {
      grow(source, text)
      run.next()
      return output.drain()
    },
    end({ cut = false } = {}) {
      source.ended = true
      source.cut = cut
      run.next()
      output.end()
      return output.drain()
    },
  }
}

/**
 * Maximum number of scans without a closing bracket. Beyond this limit, the parser treats the rest of the answer as
 * text.
 */
const maxUnclosed = 30

/** Number of characters that are read before the source discards them. */
const forgetAfter = 4_096

/**
 * Maximum number of characters of a call that the parser holds back until the text after the call arrives. A call of
 * more than twice this length is streamed.
 */
const heldLength = 400

interface Scan {
  source: Source
  tools: ReadonlyMap<string, SyntheticTool>
  openings: readonly Opening[]
  output: Output
  quotations: Quotations
}

function* scan({ source, tools, openings, output, quotations }: Scan): Reading<void> {
  const context = createTextContext()
  const byFirst = Map.groupBy(openings, ({ literal }) => literal.charAt(0))
  const candidate = new RegExp(
    `[${[...byFirst.keys()].map((character) => character.replace(/[\\\]^-]/, "\\$&")).join("")}]`,
    "g",
  )
  /** The context of the first held call. */
  let position = { announced: false, ownLine: false }

  function emitText(end: number): void {
    const text = source.text.slice(source.position, end)
    source.position = end
    context.pass(text)
    output.text(text)
  }

  function openingHere(atLineStart: boolean): Reading<Opening | undefined> {
    return findOpening(source, byFirst.get(source.text.charAt(source.position)) ?? [], atLineStart)
  }

  /**
   * Decides from the following text whether the held calls are meant as calls. Continues to hold the calls if another
   * call may follow.
   */
  function* settle(): Reading<void> {
    if (!output.isHolding()) return
    const start = source.position
    const gap = yield* takeWhile(source, /[\s,;]*/y)
    const next = yield* charAt(source)
    const followed = next !== "" && (yield* openingHere(/[\r\n]/.test(gap))) !== undefined
    source.position = start
    if (followed) return
    const endsLine = /[\r\n]/.test(source.text.charAt(start - 1))
    const after = /^$|[<[{`]/.test(next) ? "" : `${endsLine ? "\n" : ""}${yield* peekSentence(source)}`
    if (after === "" || !disownsCall(after, position)) output.release()
    else context.pass(output.withdraw())
  }

  let afterCall = false
  for (;;) {
    if (source.position > forgetAfter) forget(source)
    candidate.lastIndex = source.position
    const found = candidate.exec(source.text)
    emitText(found?.index ?? source.text.length)
    if (!found) {
      if (source.ended) return
      forget(source)
      yield
      continue
    }
    const start = source.position
    const character = source.text.charAt(start)
    const isText = context.isQuoted(character) || source.unclosed > maxUnclosed
    const atLineStart = context.atLineStart()
    const opening = isText ? undefined : yield* openingHere(atLineStart)
    const textEnd = opening === undefined ? start + 1 : yield* thoughtsEnd(source, context)
    if (opening === undefined || textEnd !== undefined) {
      output.release()
      emitText(textEnd ?? start + 1)
      continue
    }
    const followsCall = context.followsCall()
    const lead = followsCall ? "neutral" : context.leadIn()
    const isExample = lead === "mention"
    if (!output.isHolding()) position = { announced: lead === "intent", ownLine: atLineStart }
    source.position += opening.literal.length
    const call = output.newCall()
    const sink = isExample ? ignoringSink : atLineStart || followsCall ? call.sink : withinLine(call.sink)
    const reading = opening.read({ source, sink, tools, start, atLineStart, afterCall, followsCall })
    let step = reading.next()
    for (; !step.done; step = reading.next()) {
      const isLong = source.text.length - start > 2 * heldLength
      if (isLong && call.hasBegun() && !quotations.contain(source.text.slice(start))) call.stream()
      yield
    }
    const text = source.text.slice(start, source.position)
    if (step.value === "text") {
      output.release()
      source.position = start
      emitText(start + 1)
    } else if (step.value === "mark" && source.ended) {
      output.mark(text)
    } else if (isExample || (step.value === "calls" && quotations.contain(text))) {
      output.release()
      context.passExample(text)
      output.text(text)
    } else if (step.value === "mark") {
      output.mark(text)
      yield* settle()
    } else {
      call.hold(text)
      if (text.length > heldLength) output.release()
      context.afterCall()
      afterCall = true
      yield* settle()
    }
  }
}

/**
 * Returns the white space after the position and the text up to the end of the first sentence, without consuming them.
 * The text ends at the end of its line at the latest and has at most 160 characters.
 */
function* peekSentence(source: Source): Reading<string> {
  const start = source.position
  const gap = yield* takeWhile(source, /\s*/y)
  const sentence = yield* takeWhile(source, /(?:(?![.!?]\s|[。！？])[^\n]){0,160}/y)
  source.position = start
  return gap + sentence
}

/** Texts that the model has read. */
interface Quotations {
  /** Returns true if one of the texts contains the call, apart from white space, escapes and line numbers. */
  contain(call: string): boolean
}

/** Minimum length in characters of a call that can be recognized as a quotation. */
const shortestQuotation = 16

function createQuotations(texts: readonly string[]): Quotations {
  let known: string[] | undefined
  return {
    contain(call) {
      if (texts.length === 0) return false
      const compared = comparable(call)
      known ??= texts.map(comparable)
      return compared.length >= shortestQuotation && known.some((text) => text.includes(compared))
    },
  }
}

function comparable(text: string): string {
  return text.replace(/^[ \t]*\d+[|:\t→][ \t]?/gm, "").replace(/\\[nrt]|[\s\\]/g, "")
}

/** Maximum length of an opening in characters. */
const longestOpening = 100

/** Finds the longest opening at the current position. Waits only while a longer opening is possible. */
function* findOpening(
  source: Source,
  openings: readonly Opening[],
  atLineStart: boolean,
): Reading<Opening | undefined> {
  if (openings.length === 0) return undefined
  for (;;) {
    const text = slice(source, source.position, source.position + longestOpening)
    const first = openings.find(
      ({ literal, explicit }) =>
        (explicit || atLineStart) &&
        (text.startsWith(literal) || (!source.ended && literal.startsWith(text))),
    )
    if (first === undefined || text.startsWith(first.literal)) return first
    yield
  }
}

/**
 * Returns the end of the thinking block that contains the current position. Calls in this block are text. If the block
 * never ends, returns the end of the text if the answer was cut off. Returns undefined if it was not, and outside a
 * block.
 */
function* thoughtsEnd(source: Source, context: TextContext): Reading<number | undefined> {
  const end = context.thoughtsEnd()
  if (end === undefined) return undefined
  const found = yield* findAny(source, [end], source.position)
  return found?.at ?? (source.cut ? source.text.length : undefined)
}

const ignoringSink: CallSink = { start() {}, delta() {}, call() {}, malformed() {} }

/**
 * Returns a sink for calls within a line. The sink drops `unknown`, because a call to an unknown tool within a line is
 * probably an example.
 */
function withinLine(sink: CallSink): CallSink {
  return { ...sink, malformed: ({ unknown: _, ...call }) => sink.malformed(call) }
}

type Output = ReturnType<typeof createOutput>

/** A call that is being read. Its events wait until the call is held, or until they are released as a stream. */
interface PendingCall {
  sink: CallSink
  hasBegun(): boolean
  /** Releases all waiting events, first those of the held calls. Later events are released immediately. */
  stream(): void
  /** Adds the complete call to the held calls. Does nothing after `stream`. */
  hold(text: string): void
}

/**
 * Collects events. Holds back white space until text or a call follows. Holds back complete calls until they are
 * released or withdrawn.
 */
function createOutput() {
  let events: ParserEvent[] = []
  let space = ""
  let afterCall = false
  let held: { text: string; events: ParserEvent[] } | undefined

  function beforeCall(): void {
    space = ""
    afterCall = true
  }

  /** Adds text and joins it with a preceding text event. */
  function pushText(text: string): void {
    const last = events.at(-1)
    if (last?.type === "text") last.text += text
    else if (text !== "") events.push({ type: "text", text })
  }

  function release(): void {
    if (held === undefined) return
    beforeCall()
    events.push(...held.events)
    held = undefined
  }

  function newCall(): PendingCall {
    let own: ParserEvent[] = []
    let isStreaming = false
    const add = (event: ParserEvent) => (isStreaming ? events : own).push(event)
    return {
      sink: {
        start: (tool) => add({ type: "call-start", tool }),
        delta(delta) {
          const last = (isStreaming ? events : own).at(-1)
          if (last?.type === "call-delta") last.delta += delta
          else if (delta !== "") add({ type: "call-delta", delta })
        },
        call: (call) => add({ type: "call", ...call }),
        malformed: (call) => add({ type: "malformed", ...call }),
      },
      hasBegun: () => own.length > 0,
      stream() {
        release()
        beforeCall()
        events.push(...own)
        own = []
        isStreaming = true
      },
      hold(text) {
        if (isStreaming) return
        held ??= { text: "", events: [] }
        held.text += text
        // A malformed call that is not announced yet can be repeated under a new id.
        const ended = own.map((_, index) =>
          own.slice(index).find(({ type }) => /^(call|malformed)$/.test(type)),
        )
        held.events.push(
          ...own.filter(({ type }, index) => type === "malformed" || ended[index]?.type !== "malformed"),
        )
      },
    }
  }

  function text(added: string): void {
    if (held !== undefined) {
      held.text += added
      return
    }
    const shown = afterCall ? added.trimStart() : added
    if (shown === "") return
    afterCall = false
    const kept = (space + shown).trimEnd()
    space = (space + shown).slice(kept.length)
    pushText(kept)
  }

  return {
    newCall,
    isHolding: () => held !== undefined,
    /** Reports the held calls. */
    release,
    /** Converts the held calls back to text, and returns the text. */
    withdraw(): string {
      const withdrawn = held?.text ?? ""
      held = undefined
      text(withdrawn)
      return withdrawn
    },
    /** Drops a mark and the white space around it. While calls are held, adds the mark to their text instead. */
    mark(mark: string): void {
      if (held === undefined) beforeCall()
      else held.text += mark
    },
    text,
    end() {
      release()
      pushText(space)
      space = ""
    },
    drain(): ParserEvent[] {
      const drained = events
      events = []
      return drained
    },
  }
}
