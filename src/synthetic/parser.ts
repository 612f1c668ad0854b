import type { CallSink, DialectName, MalformedCall, Opening, ReadCall, SyntheticTool } from "./dialect.ts"
import { openingsFor } from "./dialects.ts"
import { createSource, findAny, forget, grow, type Reading, type Source, slice } from "./source.ts"
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
  /** Adds text and returns the new events. Holds back only text that may begin a call. */
  push(text: string): ParserEvent[]
  /** Ends the text and returns the remaining events. `cut` means that the answer reached its token limit. */
  end(options?: { cut?: boolean }): ParserEvent[]
}

/**
 * Creates a parser for one answer. The result does not depend on how the text is split into pieces. Drops white space
 * next to a call. A call in code, a quotation, a closed thinking block, or an example stays text. A call in a thinking
 * block that never closes counts. `malformed` is a call that cannot be read; if it has `unknown`, its only problem is
 * that the tool does not exist.
 */
export function createCallParser(options: {
  tools: readonly SyntheticTool[]
  /** The dialect that the model was asked to use. */
  dialect: DialectName
}): CallParser {
  const source = createSource()
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]))
  const output = createOutput()
  const run = scan({ source, tools, openings: openingsFor(options.dialect, options.tools), output })
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

/** Maximum number of scans without a closing bracket. Beyond it, the parser treats the rest of the answer as text. */
const maxUnclosed = 30

/** Number of read characters after which the source discards them. */
const forgetAfter = 4_096

interface Scan {
  source: Source
  tools: ReadonlyMap<string, SyntheticTool>
  openings: readonly Opening[]
  output: Output
}

function* scan({ source, tools, openings, output }: Scan): Reading<void> {
  const context = createTextContext()
  const byFirst = Map.groupBy(openings, ({ literal }) => literal.charAt(0))
  const candidate = new RegExp(
    `[${[...byFirst.keys()].map((character) => character.replace(/[\\\]^-]/, "\\$&")).join("")}]`,
    "g",
  )

  function emitText(end: number): void {
    const text = source.text.slice(source.position, end)
    source.position = end
    context.pass(text)
    output.text(text)
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
    const possible = isText ? [] : (byFirst.get(character) ?? [])
    const opening = yield* findOpening(source, possible, context)
    const textEnd = opening === undefined ? start + 1 : yield* thoughtsEnd(source, context)
    if (opening === undefined || textEnd !== undefined) {
      emitText(textEnd ?? start + 1)
      continue
    }
    const isExample = context.introducesExample()
    const atLineStart = context.atLineStart()
    source.position += opening.literal.length
    const followsCall = context.followsCall()
    const sink = isExample ? ignoringSink : atLineStart || followsCall ? output.sink : withinLine(output.sink)
    const outcome = yield* opening.read({ source, sink, tools, start, atLineStart, afterCall, followsCall })
    if (outcome === "mark" && !isExample) output.mark()
    else if (outcome === "text") {
      source.position = start
      emitText(start + 1)
    } else if (isExample) {
      const text = source.text.slice(start, source.position)
      context.passExample(text)
      output.text(text)
    } else {
      context.afterCall()
      afterCall = true
    }
  }
}

/** Maximum length of an opening in characters. */
const longestOpening = 100

/** Finds the longest opening at the current position. Waits only while a longer opening is possible. */
function* findOpening(
  source: Source,
  openings: readonly Opening[],
  context: { atLineStart(): boolean },
): Reading<Opening | undefined> {
  const atLineStart = context.atLineStart()
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
 * Returns the end of the current thinking block, in which calls do not count. Returns undefined outside a block, or if
 * the block never ends.
 */
function* thoughtsEnd(source: Source, context: TextContext): Reading<number | undefined> {
  const end = context.thoughtsEnd()
  if (end === undefined) return undefined
  const found = yield* findAny(source, [end], source.position)
  return found?.at ?? (source.cut ? source.text.length : undefined)
}

const ignoringSink: CallSink = { start() {}, delta() {}, call() {}, malformed() {} }

/**
 * Returns a sink for calls within a line. It drops `unknown`, since a call of an unknown tool there is probably an
 * example.
 */
function withinLine(sink: CallSink): CallSink {
  return { ...sink, malformed: ({ unknown: _, ...call }) => sink.malformed(call) }
}

type Output = ReturnType<typeof createOutput>

/** Collects events. Holds back white space until text or a call follows. */
function createOutput() {
  let events: ParserEvent[] = []
  let space = ""
  let afterCall = false

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

  const sink: CallSink = {
    start(tool) {
      beforeCall()
      events.push({ type: "call-start", tool })
    },
    delta(delta) {
      const last = events.at(-1)
      if (last?.type === "call-delta") last.delta += delta
      else if (delta !== "") events.push({ type: "call-delta", delta })
    },
    call(call) {
      events.push({ type: "call", ...call })
    },
    malformed(call) {
      beforeCall()
      events.push({ type: "malformed", ...call })
    },
  }

  return {
    sink,
    /** Drops the white space around a mark. */
    mark: beforeCall,
    text(text: string) {
      const shown = afterCall ? text.trimStart() : text
      if (shown === "") return
      afterCall = false
      const kept = (space + shown).trimEnd()
      space = (space + shown).slice(kept.length)
      pushText(kept)
    },
    end() {
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
