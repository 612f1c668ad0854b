import * as z from "zod"
import { NotDirectoryError } from "../files/file-errors.ts"
import { statPath } from "../files/open-file.ts"
import type { Job, ToolContext } from "../tool/context.ts"
import { createOutputBuffer, type OutputBuffer } from "../tool/output-buffer.ts"
import { define, type Info, type OutputLimits, type ToolResult } from "../tool/tool.ts"
import { defaultLimits } from "../tool/truncate.ts"
import { abortedError, throwIfAborted } from "../util/abort.ts"
import { readText } from "../util/file-system.ts"
import { resolvePath } from "../util/paths.ts"
import { preparePipes } from "../util/pipe.ts"
import type { RecordTree } from "../util/process.ts"
import { createJob } from "./command/background-job.ts"
import { describeOutput, formatSeconds } from "./command/command-text.ts"
import { createProgress } from "./command/progress.ts"
import { sandboxNote } from "./command/sandbox-note.ts"
import { shellCommand } from "./command/shell.ts"
import { type ShellCommand, startCommand } from "./command/start-command.ts"
import { type Ending, supervise } from "./command/supervise.ts"

/** Milliseconds. */
const defaultTimeout = 120_000
const maxTimeout = 3_600_000

/** The line that says how it ended comes on top of what the buffer gives: its bytes at most. */
const lastLineBytes = 700

/** Characters of the output's end that an interface is given: while it runs, and in the end. */
const liveCharacters = 4_000
const finalCharacters = 30_000

const parameters = z.lazy(() =>
  z.object({
    command: z.string().min(1).describe("Command for bash -c"),
    description: z.string().optional().describe("What it does, in 5 to 10 words, for the user"),
    timeout: z.coerce
      .number()
      .int()
      .positive()
      .max(maxTimeout, `at most ${maxTimeout} (one hour); run longer commands as a job, with a trailing &`)
      .optional()
      .describe(`Milliseconds (default ${defaultTimeout}, at most ${maxTimeout})`),
    workdir: z.string().min(1).optional().describe("Directory to run it in (default: the working directory)"),
    stdin: z.boolean().optional().describe("True: start it as a job that accepts job input"),
  }),
)

/** The parameters where there is a sandbox. */
const sandboxedParameters = z.lazy(() =>
  parameters.unwrap().extend({
    outside: z.boolean().optional().describe("True: run it outside the sandbox. The user is asked"),
  }),
)

/**
 * A command with open input is waited for so long, in milliseconds: what asks for something has mostly asked by then,
 * and what has failed has ended.
 */
const handOverMs = 1_000

/** Environment variables by name; an undefined one is not set. */
export type CommandVariables = Readonly<Record<string, string | undefined>>

/** What the host decides about commands. */
export interface BashOptions {
  /** The variables a command is given, and no others. */
  environment(
    command: string,
    place: { cwd: string; sessionID: string; callID: string | undefined },
  ): CommandVariables | Promise<CommandVariables>
  /** A program that takes `-c` and a command. Default: `/bin/bash`, else `/bin/sh`. */
  shell?: string
  /** Writes a command of a session down, so that a later start ends what this one could not. */
  record?: (tree: Parameters<RecordTree>[0], sessionID: string) => () => void
  /** There is a sandbox to run commands in: see `ToolContext.sandbox`. Changes what models are told. */
  sandboxed?: boolean
  /** For calls that name none. Milliseconds. */
  defaultTimeout?: number
  /** Of what the model reads. Default: 2,000 lines or 50 KB, both ends. */
  limits?: Partial<OutputLimits>
}

/** Runs a command. An exit code other than 0 and a timeout are results; only an abort is thrown. */
export function createBashTool(options: BashOptions): Info {
  const limits = roomForLastLine({ ...defaultLimits, keep: "head-tail", ...options.limits })
  const texts = options.sandboxed ? ["./bash.md", "./bash-sandbox.md"] : ["./bash.md"]
  return define<typeof sandboxedParameters | typeof parameters>("bash", {
    description: texts.map((name) => readText(new URL(name, import.meta.url))).join("\n"),
    parameters: options.sandboxed ? sandboxedParameters : parameters,
    access: "execute",
    asksFirst: true,
    limits: { keep: "head-tail", ...options.limits },
    async execute(args, ctx) {
      const { command, description = command } = args
      const workdir = resolvePath(args.workdir ?? ".", ctx.directory)
      // While leave is asked for.
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
      const { argv, env } = shellCommand(command, {
        shell: options.shell,
        environment: await options.environment(command, { cwd: workdir, sessionID, callID }),
      })
      const timeoutMs = args.timeout ?? options.defaultTimeout ?? defaultTimeout
      const stdin = args.stdin === true && ctx.jobs !== undefined
      const shell = { text: command, argv, env, cwd: workdir, outside, stdin }
      const work = () => run({ shell, description, timeoutMs, limits, record: options.record }, ctx)
      return ctx.changes ? ctx.changes.command(command, ctx.abort, work) : work()
    },
  })
}

function roomForLastLine(limits: OutputLimits): OutputLimits {
  const { maxLines, maxBytes, keep } = limits
  return { maxLines: Math.max(1, maxLines - 1), maxBytes: Math.max(1, maxBytes - lastLineBytes), keep }
}

/** A call with nothing left to decide. */
interface Run {
  shell: ShellCommand
  description: string
  timeoutMs: number
  limits: OutputLimits
  record: BashOptions["record"]
}

async function run(plan: Run, ctx: ToolContext): Promise<ToolResult> {
  const { shell, description, timeoutMs, limits } = plan
  const startedAt = Date.now()
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
    // Whoever follows the call may want to know what runs.
    await report({ process: process.identity })
    const patience = { timeoutMs, signal: ctx.abort, ...(shell.stdin ? { handOverMs } : {}) }
    const ending = await supervise(process, patience)
    const durationMs = Math.round(performance.now() - start)
    await progress.finish()
    if (ending.cause === "abort" || ctx.abort.aborted) throw abortedError(ctx.abort)
    const goesOn = ending.cause === "handed-over" || (ending.cause === "exit" && ending.goesOn)
    if (goesOn && ctx.jobs) {
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
      // The first process of a sandbox holds the output open until nothing runs in it.
      void process.closed.then(ended)
    } else if (goesOn) {
      await process.kill()
    }
    return resultOf({ plan, ending, durationMs, buffer, sandboxed, jobID: job?.info().id })
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

function resultOf(call: {
  plan: Run
  ending: Ending
  durationMs: number
  buffer: OutputBuffer
  sandboxed: boolean
  jobID: string | undefined
}): ToolResult {
  const { plan, ending, durationMs, buffer, sandboxed, jobID } = call
  const { text, ...cut } = buffer.view()
  const notes = [endingNote(ending, plan.timeoutMs), formatSeconds(durationMs)]
  if (jobID !== undefined) notes.push(`continues in the background as ${jobID}: see the job tool`)
  else if (ending.cause === "exit" && ending.goesOn) notes.push("processes it left running were killed")
  const failed = ending.cause === "exit" && ending.exit.code !== 0
  const note = sandboxed && failed ? sandboxNote({ output: buffer.tail(finalCharacters) }) : undefined
  if (note !== undefined) notes.push(note)

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
    return `timed out after ${timeoutMs} ms; killed with everything it started. Set a longer timeout, or run it as a job with &`
  }
  const { code, signal } = ending.exit
  return signal ? `killed by ${signal}` : `exit code ${code}`
}
