import type { CallSink, DialectName, MalformedCall, Opening, ReadCall, SyntheticTool } from "./dialect.ts"
import { openingsFor } from "./dialects.ts"
import { createSource, findAny, forget, grow, type Reading, type Source, slice } from "./source.ts"
import { createTextContext, type TextContext } from "./text-context.ts"

/** What was found in an answer, in its order. */
export type ParserEvent =
  | { type: "text"; text: string }
  /** A call has begun; all that comes before the next `call` or `malformed` belongs to it. */
  | { type: "call-start"; tool: string }
  /** A piece of its input. The pieces add up to the input, unless it had to be mended. */
  | { type: "call-delta"; delta: string }
  | ({ type: "call" } & ReadCall)
  | ({ type: "malformed" } & MalformedCall)

/** Reads calls out of a text that comes in pieces. */
export interface CallParser {
  /** What the piece adds. Only what may be the beginning of a call is kept back. */
  push(text: string): ParserEvent[]
  /** What was kept back. `cut`: the answer reached its limit. Nothing may be pushed after it. */
  end(options?: { cut?: boolean }): ParserEvent[]
}

/**
 * A parser of one answer. Calls, and how the text around them reads, do not depend on how it is cut into pieces; white
 * space next to a call is left out. A call counts where the model means one: not in code, quotations, thoughts or
 * examples, and only of `tools`. In thoughts that the answer ends in, without an end of their own, it counts. `malformed`
 * is what was meant as a call and cannot be read as one; with `unknown` it can, but there is no such tool.
 */
export function createCallParser(options: {
  tools: readonly SyntheticTool[]
  /** The dialect that the model was told. */
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

/** So many brackets that never close are no slip of a model's: the rest of such a text is taken as text. */
const mostUnclosed = 30

/** Text that was read is let go in steps of so many characters. */
const forgetAfter = 4_096

interface Scan {
  source: Source
  tools: ReadonlyMap<string, SyntheticTool>
  openings: readonly Opening[]
  output: Output
}

function* scan({ source, tools, openings, output }: Scan): Reading<void> {
  const surroundings = createTextContext()
  const byFirst = Map.groupBy(openings, ({ literal }) => literal.charAt(0))
  const candidate = new RegExp(
    `[${[...byFirst.keys()].map((character) => character.replace(/[\\\]^-]/, "\\$&")).join("")}]`,
    "g",
  )

  function say(end: number): void {
    const text = source.text.slice(source.position, end)
    source.position = end
    surroundings.pass(text)
    output.text(text)
  }

  let afterCall = false
  for (;;) {
    if (source.position > forgetAfter) forget(source)
    candidate.lastIndex = source.position
    const found = candidate.exec(source.text)
    say(found?.index ?? source.text.length)
    if (!found) {
      if (source.ended) return
      forget(source)
      yield
      continue
    }
    const start = source.position
    const character = source.text.charAt(start)
    const isText = surroundings.isQuoted(character) || source.unclosed > mostUnclosed
    const possible = isText ? [] : (byFirst.get(character) ?? [])
    const opening = yield* findOpening(source, possible, surroundings)
    const textEnd = opening === undefined ? start + 1 : yield* thoughtsEnd(source, surroundings)
    if (opening === undefined || textEnd !== undefined) {
      say(textEnd ?? start + 1)
      continue
    }
    const isExample = surroundings.introducesExample()
    const atLineStart = surroundings.atLineStart()
    source.position += opening.literal.length
    const followsCall = surroundings.followsCall()
    const sink = isExample ? deafSink : atLineStart || followsCall ? output.sink : withinLine(output.sink)
    const outcome = yield* opening.read({ source, sink, tools, start, atLineStart, afterCall, followsCall })
    if (outcome === "mark" && !isExample) output.mark()
    else if (outcome === "text") {
      source.position = start
      say(start + 1)
    } else if (isExample) {
      const text = source.text.slice(start, source.position)
      surroundings.passExample(text)
      output.text(text)
    } else {
      surroundings.afterCall()
      afterCall = true
    }
  }
}

/** No opening is longer, in characters. */
const longestOpening = 100

/** The longest opening that comes next. Waits only as long as a longer one still may. */
function* findOpening(
  source: Source,
  openings: readonly Opening[],
  surroundings: { atLineStart(): boolean },
): Reading<Opening | undefined> {
  const atLineStart = surroundings.atLineStart()
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

/** Where the thoughts end that this place is in: a call in them is none. Shows only there, or at the answer's end. */
function* thoughtsEnd(source: Source, surroundings: TextContext): Reading<number | undefined> {
  const end = surroundings.thoughtsEnd()
  if (end === undefined) return undefined
  const found = yield* findAny(source, [end], source.position)
  return found?.at ?? (source.cut ? source.text.length : undefined)
}

const deafSink: CallSink = { start() {}, delta() {}, call() {}, malformed() {} }

/** In the middle of a line what names no tool of these may well be an example. */
function withinLine(sink: CallSink): CallSink {
  return { ...sink, malformed: ({ unknown: _, ...call }) => sink.malformed(call) }
}

type Output = ReturnType<typeof createOutput>

/** Collects events. White space waits until it is known whether text or a call follows. */
function createOutput() {
  let events: ParserEvent[] = []
  let space = ""
  let afterCall = false

  function beforeCall(): void {
    space = ""
    afterCall = true
  }

  /** Pieces that were read one after the other are one. */
  function sayText(text: string): void {
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
    /** A mark was left out, with the white space around it. */
    mark: beforeCall,
    text(text: string) {
      const shown = afterCall ? text.trimStart() : text
      if (shown === "") return
      afterCall = false
      const kept = (space + shown).trimEnd()
      space = (space + shown).slice(kept.length)
      sayText(kept)
    },
    end() {
      sayText(space)
      space = ""
    },
    drain(): ParserEvent[] {
      const drained = events
      events = []
      return drained
    },
  }
}
