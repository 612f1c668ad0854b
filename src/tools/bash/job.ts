import * as z from "zod"
import type { Job, JobInfo, JobInput, ToolContext } from "../../tool/context.ts"
import { define, type ToolResult } from "../../tool/tool.ts"
import { orAbort, sleep, throwIfAborted, within } from "../../util/abort.ts"
import { errorMessage, TackleError } from "../../util/errors.ts"
import { readText } from "../../util/file-system.ts"
import { currentTime, formatSeconds } from "../../util/time.ts"
import { counted } from "../../util/words.ts"
import { describeOutput } from "./command.ts"

/** Maximum length of a command in lists, in characters. */
const shownCommand = 120

/**
 * Time limits in milliseconds for a job to read its input and to reply. A reply ends after `silenceMs` without output.
 */
const takeMs = 2_000
const replyMs = 2_000
const silenceMs = 100

const parameters = z.lazy(() =>
  z.object({
    action: z.enum(["list", "output", "input", "kill"]).describe("What to do"),
    id: z.string().optional().describe("Job id (job_…), required except for list"),
    text: z.string().max(65_536).optional().describe("For input: text to write"),
    newline: z.boolean().optional().describe("For input: whether a newline follows text (default true)"),
    close: z.boolean().optional().describe("For input: whether to close the input after text"),
  }),
)

/** Thrown if the session does not have a job with this id, or if the call contains no id. */
export class UnknownJobError extends TackleError {
  constructor(id: string | undefined, known: readonly JobInfo[]) {
    const problem = id === undefined ? "This action requires a job id." : `Job ${id} does not exist.`
    const jobs = known.length === 0 ? "This session has no jobs." : `Jobs:\n${known.map(describe).join("\n")}`
    super(`${problem} ${jobs}`, { code: "job.unknown", recoverable: true })
  }
}

/**
 * Thrown if a job does not accept input, because it was started without input, its input was closed, or it has ended.
 */
export class JobInputError extends TackleError {
  constructor(id: string, status: JobInfo["status"]) {
    const why = { running: "its input is closed", exited: "it has exited", killed: "it was killed" }[status]
    super(
      `Job ${id} does not accept input: ${why}. To write to a command, start it with bash and stdin: true.`,
      { code: "job.input", recoverable: true },
    )
  }
}

/**
 * Manages a session's background jobs. Only the `input` action asks for permission, because the commands were permitted
 * when they started.
 */
export const jobTool = define("job", {
  description: readText(new URL("./job.md", import.meta.url)),
  parameters,
  access: "execute",
  polls: ({ action }) => action === "output" || action === "list",
  async execute(args, ctx) {
    if (args.action === "list") return list(jobsOf(ctx))
    const job = jobNamed(args.id, ctx)
    if (args.action === "input") return writeInput(job, args, ctx)
    if (args.action === "kill") await job.kill()
    return show(job)
  },
})

function jobsOf(ctx: ToolContext): JobInfo[] {
  return (ctx.jobs?.list() ?? []).filter((info) => info.sessionID === ctx.sessionID)
}

function jobNamed(id: string | undefined, ctx: ToolContext): Job {
  const job = id === undefined ? undefined : ctx.jobs?.get(id)
  if (job?.info().sessionID === ctx.sessionID) return job
  throw new UnknownJobError(id, jobsOf(ctx))
}

async function writeInput(
  job: Job,
  { text = "", newline = true, close = false }: { text?: string; newline?: boolean; close?: boolean },
  ctx: ToolContext,
): Promise<ToolResult> {
  const { input } = job
  const { id, command, status } = job.info()
  if (!input || status !== "running") throw new JobInputError(id, status)
  const written = newline && (text !== "" || !close) ? `${text}\n` : text
  if (written !== "")
    await ctx.ask({
      permission: "bash",
      patterns: [commandWithInput(command, written)],
      metadata: { command, input: text, job: id, workdir: input.workdir },
    })
  throwIfAborted(ctx.abort)
  const before = job.info().bytes
  const taken = await writeWithin(input, written, ctx.abort)
  if (close) input.end()
  await replied(job, before, ctx.abort)
  const shown = show(job)
  return taken ? shown : { ...shown, output: `${shown.output}\n[The job has not read all of the input yet.]` }
}

/**
 * Combines a command and its input into one shell command, so that permission rules judge the input by its use: a shell
 * runs it, but `wc` only counts it.
 */
export function commandWithInput(command: string, text: string): string {
  const lines = text.split("\n")
  let mark = "END_OF_INPUT"
  while (lines.includes(mark)) mark += "_"
  return `{ ${command}\n} <<'${mark}'\n${text.endsWith("\n") ? text : `${text}\n`}${mark}`
}

/** Writes text to a job. Returns false if the job has not read it within `takeMs`. The job can still read it later. */
async function writeWithin(input: JobInput, text: string, signal: AbortSignal): Promise<boolean> {
  if (text === "") return true
  const done = input.write(text).then(() => true)
  try {
    return (await orAbort(within(done, takeMs), signal)) ?? false
  } catch (error) {
    if (signal.aborted) throw error
    throw new TackleError(
      `Cannot write the input: ${errorMessage(error)}. The job no longer reads its input.`,
      {
        code: "job.input",
        recoverable: true,
        cause: error,
      },
    )
  }
}

/**
 * Waits until the job has written output and has then been silent for `silenceMs`, or until the job has ended. Waits at
 * most `replyMs` in total.
 */
async function replied(job: Job, before: number, signal: AbortSignal): Promise<void> {
  let last = before
  const deadline = currentTime() + replyMs
  while (currentTime() < deadline && job.info().status === "running") {
    await sleep(silenceMs, signal)
    const { bytes } = job.info()
    if (bytes !== before && bytes === last) return
    last = bytes
  }
}

function list(jobs: readonly JobInfo[]): ToolResult {
  const running = jobs.filter((info) => info.status === "running").length
  return {
    title: `${running} running, ${jobs.length - running} ended`,
    output: jobs.length === 0 ? "No background jobs." : jobs.map(describe).join("\n"),
    metadata: { jobs },
  }
}

function show(job: Job): ToolResult {
  const { text, ...cut } = job.output()
  const info = job.info()
  return {
    title: `${info.id} ${info.status}`,
    output: `${describeOutput(text, info.bytes)}\n[${describe(info)}]`,
    metadata: { job: info, ...cut },
  }
}

function describe(info: JobInfo): string {
  const time = formatSeconds((info.endedAt ?? currentTime()) - info.startedAt)
  const [firstLine = ""] = info.command.split("\n")
  const command = firstLine.length > shownCommand ? `${firstLine.slice(0, shownCommand)}…` : firstLine
  return `${info.id} · ${info.status} · ${time} · ${counted(info.bytes, "byte")} · ${command}`
}
