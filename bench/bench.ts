import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { errorMessage } from "../src/util/errors.ts"
import type { Line, Runs } from "./line.ts"
import { runSubject, type Scenario, type Trace } from "./run-subject.ts"
import { median } from "./statistics.ts"
import type { Subject } from "./subject.ts"

/** A group of table lines that are measured together. */
export interface Row {
  id: string
  measure(bench: Bench): Promise<Line[]>
}

/** Tools for measuring a row. */
export interface Bench {
  /** The floor, Tackle and the available peers. */
  subjects: Subject[]
  /** Returns the number of runs: the requested number, or the row's default. */
  count(runs: number): number
  /** Runs the scenario with all subjects in turn, after one discarded run of each. */
  compare(scenario: Scenario, options: CompareOptions): Promise<Runs<Trace>>
  /** Measures any other work that the subjects do, also in turn. */
  alternate<T>(subjects: Subject[], runs: number, measure: Measure<T>): Promise<Runs<T>>
  /** Returns how many times slower this machine is than the reference machine for the targets. */
  slowness(): Promise<number>
}

export interface CompareOptions {
  runs: number
  /** Additional subjects for this row. */
  extra?: Subject[]
}

type Measure<T> = (subject: Subject, home: string) => Promise<T>

/** Time in ms from the floor's start to its first request on the reference machine. */
const referenceStartMs = 65
/** Time limit for a run, in ms. */
export const runLimitMs = 90_000

export function createBench(options: {
  subjects: Subject[]
  runs?: number
  progress(text: string): void
}): Bench {
  let slowness: Promise<number> | undefined
  const bench: Bench = {
    subjects: options.subjects,
    count: (runs) => options.runs ?? runs,
    compare: (scenario, { runs, extra = [] }) =>
      bench.alternate([...options.subjects, ...extra], bench.count(runs), (subject, home) =>
        runSubject(subject, scenario, { home, limitMs: runLimitMs }),
      ),
    alternate: (subjects, runs, measure) =>
      alternate({ subjects, runs, measure, progress: options.progress }),
    slowness: () => {
      slowness ??= measureSlowness(bench)
      return slowness
    },
  }
  return bench
}

/**
 * Runs A B A B instead of A A B B, so that other load affects all subjects equally. A subject that fails once is
 * excluded, and the reason replaces its runs. Each subject keeps its own home directory for all runs.
 */
async function alternate<T>(work: {
  subjects: Subject[]
  runs: number
  measure: Measure<T>
  progress(text: string): void
}): Promise<Runs<T>> {
  const homes = await mkdtemp(join(tmpdir(), "tackle-bench-"))
  const results: Runs<T> = new Map(work.subjects.map((subject) => [subject.name, []]))
  try {
    for (let run = 0; run <= work.runs; run++) {
      for (const subject of work.subjects) {
        const done = results.get(subject.name)
        if (!Array.isArray(done)) continue
        work.progress(`${subject.name} ${run === 0 ? "warm-up" : `${run}/${work.runs}`}`)
        try {
          const result = await work.measure(subject, join(homes, subject.name))
          if (run > 0) done.push(result)
        } catch (error) {
          results.set(subject.name, `failed: ${errorMessage(error)}`)
        }
      }
    }
    return results
  } finally {
    await rm(homes, { recursive: true, force: true })
  }
}

async function measureSlowness(bench: Bench): Promise<number> {
  const floor = bench.subjects.filter((subject) => subject.name === "floor")
  const runs = await bench.alternate(floor, 5, (subject, home) =>
    runSubject(subject, { replies: () => [{ text: "Done." }] }, { home, limitMs: runLimitMs }),
  )
  const traces = runs.get("floor")
  if (!Array.isArray(traces)) throw new Error(`The floor ${traces}.`)
  return median(traces.map(startMs)) / referenceStartMs
}

/** Returns the time in ms from the start of the process to its first request. */
export function startMs(trace: Trace): number {
  return (trace.requests[0]?.time ?? Number.NaN) - trace.started
}

/** Returns the time in ms from the end of the answer in one turn to the request in the next turn. */
export function gapMs(trace: Trace, turn: number): number {
  return (trace.requests[turn + 1]?.time ?? Number.NaN) - (trace.requests[turn]?.answerEnd ?? Number.NaN)
}

/**
 * Returns the time in ms from the first byte of the first answer to the second request. This time includes the stream,
 * the call and the reply.
 */
export function streamedCallMs(trace: Trace): number {
  return (trace.requests[1]?.time ?? Number.NaN) - (trace.requests[0]?.answerStart ?? Number.NaN)
}
