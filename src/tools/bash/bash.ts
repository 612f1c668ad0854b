import * as z from "zod"
import { NotDirectoryError } from "../../files/file-errors.ts"
import { statPath } from "../../files/open-file.ts"
import type { Job, ToolContext } from "../../tool/context.ts"
import { createOutputBuffer, type OutputBuffer } from "../../tool/output-buffer.ts"
import { define, type Info, type OutputLimits, type ToolResult } from "../../tool/tool.ts"
import { defaultLimits } from "../../tool/truncate.ts"
import { abortedError, orAbort, throwIfAborted } from "../../util/abort.ts"
import { readText } from "../../util/file-system.ts"
import { resolvePath } from "../../util/paths.ts"
import { preparePipes } from "../../util/pipe.ts"
import type { RecordTree } from "../../util/process.ts"
import { currentTime, formatSeconds } from "../../util/time.ts"
import { createJob } from "./background-jobs.ts"
import {
  describeOutput,
  type Ending,
  type ShellCommand,
  shellCommand,
  startCommand,
  supervise,
} from "./command.ts"

/** Default and maximum timeout, in milliseconds. */
const defaultTimeout = 120_000
const maxTimeout = 3_600_000

/** Maximum length in bytes of the last output line, which reports how the command ended. */
const lastLineBytes = 700

/**
 * Maximum number of characters that the metadata contains from the end of the output: while the command runs, and after
 * it ends.
 */
const liveCharacters = 4_000
const finalCharacters = 30_000

const parameters = z.lazy(() =>
  z.object({
    command: z.string().min(1).describe("Command for bash -c"),
    description: z.string().optional().describe("What the command does, in 5 to 10 words, for the user"),
    timeout: z.coerce
      .number()
      .int()
      .positive()
      .max(maxTimeout, `at most ${maxTimeout} (one hour); run a longer command as a job, with a trailing &`)
      .optional()
      .describe(`Milliseconds (default ${defaultTimeout}, at most ${maxTimeout})`),
    workdir: z
      .string()
      .min(1)
      .optional()
      .describe("Directory to run the command in (default: the working directory)"),
    stdin: z.boolean().optional().describe("Start the command as a job that accepts input"),
  }),
)

const sandboxedParameters = z.lazy(() =>
  parameters.unwrap().extend({
    outside: z.boolean().optional().describe("Run the command outside the sandbox, after asking the user"),
  }),
)

/**
 * Time in milliseconds to wait for a command with open input before it becomes a job. Most commands prompt for input or
 * fail within this time.
 */
const handOverMs = 1_000

/** Environment variables by name. Variables with an undefined value are not set. */
export type CommandVariables = Readonly<Record<string, string | undefined>>

/** Options for the bash tool. */
export interface BashOptions {
  /** Returns the complete environment of a command. */
  environment(
    command: string,
    call: { cwd: string; sessionID: string; callID: string | undefined },
  ): CommandVariables | Promise<CommandVariables>
  /** A program that accepts `-c` and a command. Default: `/bin/bash`, or `/bin/sh` if `/bin/bash` does not exist. */
  shell?: string
  /**
   * Records a command's processes, so that the next start of Tackle can end them if this process is killed. Returns a
   * function that removes the record.
   */
  record?: (tree: Parameters<RecordTree>[0], sessionID: string) => () => void
  /**
   * Whether commands can run in a sandbox (`ToolContext.sandbox`). Determines the tool's description and parameters.
   */
  sandboxed?: boolean
  /** Timeout in milliseconds for calls that do not set a timeout. Default: 120,000. */
  defaultTimeout?: number
  /** Output limits. Default: 2,000 lines or 50 KB, from the beginning and the end. */
  limits?: Partial<OutputLimits>
}

/** Creates the bash tool. Nonzero exit codes and timeouts are returned as results, not as errors. */
export function createBashTool(options: BashOptions): Info {
  const limits = withoutLastLine({ ...defaultLimits, keep: "head-tail", ...options.limits })
  const text = readText(new URL("./bash.md", import.meta.url))
  const sandboxText = readText(new URL("./bash-sandbox.md", import.meta.url))
  return define<typeof sandboxedParameters | typeof parameters>("bash", {
    description: options.sandboxed ? `${text}\n${sandboxText}` : text,
    parameters: options.sandboxed ? sandboxedParameters : parameters,
    access: "execute",
    asksFirst: true,
    limits: { keep: "head-tail", ...options.limits },
    async execute(args, ctx) {
      const { command, description = command } = args
      const workdir = resolvePath(args.workdir ?? ".", ctx.directory)
      // Creates pipes in advance, while the permission request is pending.
      preparePipes()
      const outside = "outside" in args && args.outside === true && (await ctx.sandbox?.active()) === true
      await ctx.ask({
        permission: outside ? "sandbox_escape" : "bash",
        patterns: [command],
        paths: [workdir],
        metadata: { command, workdir, description },
      })
      throwIfAborted(ctx.abort)
      const found = await statPath(workdir, "Path")
      if (!found.isDirectory()) throw new NotDirectoryError(workdir)

      const { sessionID, callID } = ctx
      const place = { cwd: workdir, sessionID, callID }
      const environment = await orAbort(Promise.resolve(options.environment(command, place)), ctx.abort)
      const { argv, env } = shellCommand(command, { shell: options.shell, environment })
      const timeoutMs = args.timeout ?? options.defaultTimeout ?? defaultTimeout
      const stdin = args.stdin === true && ctx.jobs !== undefined
      const shell = { text: command, argv, env, cwd: workdir, outside, stdin }
      const work = () => run({ shell, description, timeoutMs, limits, record: options.record }, ctx)
      return ctx.changes ? ctx.changes.command(command, ctx.abort, work) : work()
    },
  })
}

function withoutLastLine(limits: OutputLimits): OutputLimits {
  const { maxLines, maxBytes, keep } = limits
  return { maxLines: Math.max(1, maxLines - 1), maxBytes: Math.max(1, maxBytes - lastLineBytes), keep }
}

/** A call with all defaults applied. */
interface Run {
  shell: ShellCommand
  description: string
  timeoutMs: number
  limits: OutputLimits
  record: BashOptions["record"]
}

async function run(plan: Run, ctx: ToolContext): Promise<ToolResult> {
  const { shell, description, timeoutMs, limits } = plan
  const startedAt = currentTime()
  const start = performance.now()
  const buffer = createOutputBuffer({ limits, spill: ctx.spill })
  const report = (more?: Record<string, unknown>) =>
    ctx.metadata({
      title: description,
      metadata: { output: buffer.tail(liveCharacters), description, ...more },
    })
  const progress = createProgress(report)
  const onOutput = (bytes: Uint8Array) => {
    buffer.push(bytes)
    progress.touch()
  }

  const { record: write } = plan
  const record = write && ((tree: Parameters<RecordTree>[0]) => write(tree, ctx.sessionID))
  const { process, sandboxed, ended } = await startCommand(shell, ctx, { onOutput, record })
  let job: Job | undefined
  try {
    await report({ process: process.identity })
    const ending = await supervise(process, {
      timeoutMs,
      signal: ctx.abort,
      handOverMs: shell.stdin ? handOverMs : undefined,
    })
    const durationMs = Math.round(performance.now() - start)
    await progress.finish()
    if (ending.cause === "abort" || ctx.abort.aborted) throw abortedError(ctx.abort)
    const continues = ending.cause === "handed-over" || (ending.cause === "exit" && ending.continues)
    if (continues && ctx.jobs) {
      // The first process of a sandbox keeps the output open until all other processes in it have ended. The job closes
      // the buffer, so this comes first.
      void process.closed.then(() => {
        const note = ended()
        if (note !== undefined) buffer.push(Buffer.from(`\n[${note}]\n`))
      })
      job = createJob({
        sessionID: ctx.sessionID,
        command: shell.text,
        workdir: shell.cwd,
        startedAt,
        process,
        buffer,
        onEnd: process.removeRecords,
      })
      ctx.jobs.add(job)
    } else if (continues) {
      await process.kill()
    }
    const note = job ? undefined : ended()
    return resultOf({ plan, ending, durationMs, buffer, sandboxed, note, jobID: job?.info().id })
  } catch (error) {
    await process.kill()
    throw error
  } finally {
    if (!job) {
      buffer.close()
      ended()
      process.removeRecords()
    }
  }
}

/** Minimum time between progress reports, in milliseconds. */
const progressMs = 100

/**
 * Throttles progress reports. Calls to `report` never overlap. After a call fails, `report` is not called again.
 * `finish` sends the final report without delay, and rejects with the first error that a call to `report` threw.
 */
function createProgress(report: () => Promise<void>): { touch(): void; finish(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined
  let finished = false
  let reports = Promise.resolve()

  function fire(): void {
    timer = undefined
    reports = reports.then(report)
    // `finish` handles the failure. Until `finish` is called, this handler prevents an unhandled rejection.
    reports.catch(() => {})
  }

  return {
    touch() {
      if (!finished) timer ??= setTimeout(fire, progressMs)
    },
    async finish() {
      finished = true
      clearTimeout(timer)
      await reports
      await report()
    },
  }
}

function resultOf(call: {
  plan: Run
  ending: Ending
  durationMs: number
  buffer: OutputBuffer
  sandboxed: boolean
  note: string | undefined
  jobID: string | undefined
}): ToolResult {
  const { plan, ending, durationMs, buffer, sandboxed, jobID } = call
  const { text, ...cut } = buffer.view()
  const notes = [endingNote(ending, plan.timeoutMs), formatSeconds(durationMs)]
  if (jobID !== undefined) notes.push(`continues in the background as ${jobID}: see the job tool`)
  else if (ending.cause === "exit" && ending.continues)
    notes.push("processes that the command left running were killed")
  if (call.note !== undefined) notes.push(call.note)
  const failed = ending.cause === "exit" && ending.exit.code !== 0
  const limits = sandboxed && failed ? sandboxNote(buffer.tail(finalCharacters)) : undefined
  if (limits !== undefined) notes.push(limits)

  const metadata: Record<string, unknown> = {
    output: buffer.tail(finalCharacters),
    description: plan.description,
    exit: ending.cause === "exit" ? ending.exit.code : null,
    durationMs,
    sandboxed,
    ...cut,
  }
  if (ending.cause === "exit" && ending.exit.signal) metadata.signal = ending.exit.signal
  if (ending.cause === "timeout") metadata.timedOut = true
  if (jobID !== undefined) metadata.jobID = jobID
  return {
    title: plan.description,
    output: `${describeOutput(text, buffer.bytes)}\n[${notes.join(" · ")}]`,
    metadata,
  }
}

function endingNote(ending: Ending, timeoutMs: number): string {
  if (ending.cause === "handed-over") return "still running, input open"
  if (ending.cause !== "exit") {
    return `timed out after ${timeoutMs} ms and was killed, along with everything that it started. Set a longer timeout, or run the command as a job with &`
  }
  const { code, signal } = ending.exit
  return signal ? `killed by ${signal}` : `exit code ${code}`
}

/** Sandbox limits, with patterns for the error messages that they can cause. */
const sandboxSigns: readonly { limit: string; sign: RegExp }[] = [
  {
    limit: "no network access except to hosts that a rule allows",
    sign: /could not resolve|name resolution|name or service not known|nodename nor servname|unknown host|no such host|EAI_AGAIN|ENOTFOUND|ENETUNREACH|network is (?:unreachable|down)|connection refused|ECONNREFUSED|blocked-by-rule|failed to (?:connect|fetch|download)|(?:temporary|dns) failure/i,
  },
  {
    limit: "only temporary files and the project's unprotected files are writable",
    sign: /read-only file system|EROFS|resource busy|EBUSY/i,
  },
  {
    limit: "no access to secrets, sockets or other processes",
    sign: /operation not permitted|EPERM|permission denied|EACCES|^bwrap: /im,
  },
]

/**
 * Returns a note on the sandbox limits that may have made a command fail, or undefined if the output does not suggest
 * that a limit was the cause.
 */
function sandboxNote(output: string): string | undefined {
  const met = sandboxSigns.filter(({ sign }) => sign.test(output)).map(({ limit }) => limit)
  if (met.length === 0) return undefined
  return `the sandbox may be the cause: ${met.join("; ")}. To run the command outside the sandbox, repeat the call with outside: true, which asks the user for permission`
}
