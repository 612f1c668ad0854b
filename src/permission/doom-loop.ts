/** A past call. `input` is canonical JSON. `result` is the returned text, undefined while the call runs. */
export interface LoopCall {
  readonly tool: string
  readonly input: string
  readonly result?: string
}

/** `count` rounds of `period` calls, including the next one. */
export interface Loop {
  kind: "repeat" | "cycle"
  count: number
  period: number
}

const longestPeriod = 4
/** Number of recent calls whose results are compared. */
export const rememberedResults = 2 * longestPeriod
const roundsWithEqualResults = 3
const roundsWithChangingResults = 10

/**
 * Returns the loop that `next` completes with the calls of this turn, oldest first: the third identical call in a row, or
 * the third round of a cycle of two to four calls. The results of the previous two rounds must be equal or unknown; if
 * they differ, the tenth round completes the loop.
 */
export function detectLoop(history: readonly LoopCall[], next: LoopCall): Loop | undefined {
  const calls = [...history, { tool: next.tool, input: next.input }]
  for (let period = 1; period <= longestPeriod; period++) {
    const count = rounds(calls, period)
    if (count < roundsWithEqualResults || !isPrimitive(calls.slice(-period))) continue
    if (count >= roundsWithChangingResults || sameResults(history, period)) {
      return { kind: period === 1 ? "repeat" : "cycle", count, period }
    }
  }
  return undefined
}

/** Counts how often the last `period` calls repeat at the end of the list. */
function rounds(calls: readonly LoopCall[], period: number): number {
  let same = 0
  for (let index = calls.length - 1 - period; index >= 0; index--) {
    if (!sameCall(calls[index], calls[index + period])) break
    same += 1
  }
  return calls.length < period ? 0 : 1 + Math.floor(same / period)
}

/** Returns false for a round that consists of shorter equal rounds: those have their own period. */
function isPrimitive(round: readonly LoopCall[]): boolean {
  for (let part = 1; part <= round.length / 2; part++) {
    if (round.length % part === 0 && round.every((call, index) => sameCall(call, round[index % part])))
      return false
  }
  return true
}

/** Compares the results of the last two complete rounds. */
function sameResults(history: readonly LoopCall[], period: number): boolean {
  const last = history.length
  for (let index = Math.max(0, last - period); index < last; index++) {
    const [late, early] = [history[index]?.result, history[index - period]?.result]
    if (late !== undefined && early !== undefined && late !== early) return false
  }
  return true
}

function sameCall(a: LoopCall | undefined, b: LoopCall | undefined): boolean {
  return a !== undefined && b !== undefined && a.tool === b.tool && a.input === b.input
}
