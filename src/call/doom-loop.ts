/**
 * A past call. `input` is canonical JSON, or the model's text if it is not a JSON object. `result` distinguishes calls
 * whose tools and inputs are equal.
 */
export interface LoopCall {
  readonly tool: string
  readonly input: string
  readonly result?: string
}

/**
 * A loop of `count` identical rounds with `period` calls each. The last round includes the call that is about to run.
 */
export interface Loop {
  kind: "repeat" | "cycle"
  count: number
  period: number
}

const longestPeriod = 4
const fewestRounds = 3
/** Number of recent calls whose results are kept at the start of a step. */
export const rememberedResults = fewestRounds * longestPeriod

/**
 * Returns the loop that `next` completes, or undefined if there is no loop. `history` contains the calls of this turn,
 * oldest first. A loop consists of at least three identical calls in a row, or at least three rounds of a cycle of two
 * to four calls. Identical calls have the same tool and input. If both have a result, it must also be the same.
 */
export function detectLoop(history: readonly LoopCall[], next: LoopCall): Loop | undefined {
  const calls = [...history, { tool: next.tool, input: next.input }]
  for (let period = 1; period <= longestPeriod; period++) {
    const count = rounds(calls, period)
    if (count < fewestRounds || !isPrimitive(calls.slice(-period))) continue
    return { kind: period === 1 ? "repeat" : "cycle", count, period }
  }
  return undefined
}

/** Returns how many times in a row the last `period` calls occur at the end of the list. */
function rounds(calls: readonly LoopCall[], period: number): number {
  let same = 0
  for (let index = calls.length - 1 - period; index >= 0; index--) {
    const [early, late] = [calls[index], calls[index + period]]
    if (!sameCall(early, late) || !sameResult(early, late)) break
    same += 1
  }
  return calls.length < period ? 0 : 1 + Math.floor(same / period)
}

/** Returns true unless the round is itself a repetition of a shorter round. */
function isPrimitive(round: readonly LoopCall[]): boolean {
  for (let part = 1; part <= round.length / 2; part++) {
    if (round.length % part === 0 && round.every((call, index) => sameCall(call, round[index % part])))
      return false
  }
  return true
}

function sameCall(a: LoopCall | undefined, b: LoopCall | undefined): boolean {
  return a !== undefined && b !== undefined && a.tool === b.tool && a.input === b.input
}

function sameResult(a: LoopCall | undefined, b: LoopCall | undefined): boolean {
  return a?.result === undefined || b?.result === undefined || a.result === b.result
}
