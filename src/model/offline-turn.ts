import type { OfflineRequest } from "./offline-requests.ts"

/** A call that the offline model makes. */
export interface OfflineCall {
  callID: string
  tool: string
  input: Record<string, unknown>
}

/** What came back for the calls of this turn, by call id. */
export type OfflineResults = ReadonlyMap<string, string>

/** A request with the calls that fulfil it, one after the other; none where no offered tool can. */
interface Job {
  request: OfflineRequest
  calls: OfflineCall[]
}

/** Calls to make now, or the answer that ends the turn. */
export type OfflineMove = { calls: OfflineCall[] } | { answer: string }

/**
 * The next move of a turn. The plan follows from requests and tools alone, and the results say how far it got: a call
 * that failed is not repeated, and what depends on it is left. `turn` makes the call ids of one session differ.
 */
export function nextMove(options: {
  requests: readonly OfflineRequest[]
  offered: ReadonlySet<string>
  results: OfflineResults
  turn: number
  /** False: no more calls, only an answer. */
  mayCall: boolean
}): OfflineMove {
  const { offered, results, turn } = options
  const jobs = options.requests.map((request, index) =>
    plan(request, { offered, prefix: `offline_${turn}_${index}` }),
  )
  const step: OfflineCall[] = []
  for (const job of jobs) {
    const call = pending(job, results)
    if (call === undefined) continue
    // Looking at several things is one step; anything else waits for what comes before it.
    if (step.length > 0 && !(isLook(call) && step.every(isLook))) break
    step.push(call)
    if (!isLook(call) || job.calls.at(-1) !== call) break
  }
  return step.length > 0 && options.mayCall ? { calls: step } : { answer: report(jobs, results) }
}

/** The first call of the job that was not made yet, unless one before it failed. */
function pending(job: Job, results: OfflineResults): OfflineCall | undefined {
  for (const call of job.calls) {
    const result = results.get(call.callID)
    if (result === undefined) return call
    if (failed(result)) return undefined
  }
  return undefined
}

function isLook({ tool }: OfflineCall): boolean {
  return tool === "list" || tool === "read" || tool === "grep" || tool === "glob"
}

function failed(result: string): boolean {
  return result.startsWith("Error: ")
}

type Step = [tool: string, input: Record<string, unknown>]

function plan(request: OfflineRequest, options: { offered: ReadonlySet<string>; prefix: string }): Job {
  const { offered, prefix } = options
  const usable = ways(request).find((way) => way.every(([tool]) => offered.has(tool))) ?? []
  const calls = usable.map(([tool, input], index) => ({ callID: `${prefix}_${index}`, tool, input }))
  return { request, calls }
}

/** How a request can be fulfilled, best way first. */
function ways(request: OfflineRequest): Step[][] {
  switch (request.kind) {
    case "list":
      return [
        [["list", inside(request.path)]],
        [["glob", { pattern: "*", ...inside(request.path) }]],
        [["bash", bash(`ls -la -- ${shellWord(request.path)}`)]],
      ]
    case "glob":
      return [[["glob", { pattern: request.pattern, ...inside(request.path) }]]]
    case "read":
      return [[["read", { filePath: request.path }]]]
    case "search":
      return [[["grep", { pattern: literal(request.text), ...inside(request.path) }]]]
    case "replace": {
      const { from, to, path } = request
      const edit = { filePath: path, oldString: from, newString: to, replaceAll: true }
      return [
        [
          ["read", { filePath: path }],
          ["edit", edit],
        ],
      ]
    }
    case "write":
      return [[["write", { filePath: request.path, content: request.content }]]]
    case "run":
      return [[["bash", bash(request.command)]]]
    case "unknown":
      return []
  }
}

function inside(path: string): Record<string, unknown> {
  return path === "." ? {} : { path }
}

function bash(command: string): Record<string, unknown> {
  return { command, description: `Run ${command}` }
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")
}

function report(jobs: readonly Job[], results: OfflineResults): string {
  return jobs.map((job) => describe(job, results)).join("\n\n")
}

function describe({ request, calls }: Job, results: OfflineResults): string {
  if (request.kind === "unknown") return `I do not understand "${shorten(request.text, 120)}".`
  const what = nameOf(request)
  if (calls.length === 0) return `${what}: not done, none of the tools I may use can do it.`
  const outcomes = calls.map(({ callID }) => results.get(callID))
  const failure = outcomes.find((outcome) => outcome !== undefined && failed(outcome))
  if (failure !== undefined) return `${what}: failed. ${shorten(failure, 400)}`
  const last = outcomes.at(-1)
  return last === undefined ? `${what}: not done.` : `${what}:\n${excerpt(last, request.kind === "run")}`
}

function nameOf(request: Exclude<OfflineRequest, { kind: "unknown" }>): string {
  switch (request.kind) {
    case "list":
      return `Files in ${request.path}`
    case "glob":
      return `Files matching ${request.pattern} in ${request.path}`
    case "read":
      return `Read ${request.path}`
    case "search":
      return `Lines with "${request.text}" in ${request.path}`
    case "replace":
      return `Replaced "${request.from}" with "${request.to}" in ${request.path}`
    case "write":
      return `Wrote ${request.path}`
    case "run":
      return `Ran ${request.command}`
  }
}

const shownLines = 12

/** The first lines of a result; of a command's output the last ones too, which say how it ended. */
function excerpt(result: string, withEnd: boolean): string {
  const lines = result.split("\n").map((line) => shorten(line, 200))
  if (lines.length <= shownLines) return lines.join("\n")
  const tail = withEnd ? lines.slice(-shownLines / 2) : []
  const head = lines.slice(0, shownLines - tail.length)
  return [...head, `… (${lines.length - head.length - tail.length} more lines)`, ...tail].join("\n")
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}
