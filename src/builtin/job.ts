import * as z from "zod"
import type { Job, JobInfo, ToolContext } from "../tool/context.ts"
import type { ToolResult } from "../tool/result.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/text-file.ts"
import { describeOutput, formatSeconds } from "./support/command-text.ts"

/** So much of a command identifies it in a list. */
const shownCommand = 120

const parameters = z.object({
  action: z.enum(["list", "output", "kill"]).describe("What to do"),
  id: z.string().optional().describe("The job (job_…), for output and kill"),
})

/** The model named a job that this session does not have. */
export class UnknownJobError extends TackleError {
  constructor(id: string | undefined, known: readonly JobInfo[]) {
    const there = known.length === 0 ? "There are no jobs." : `There are:\n${known.map(describe).join("\n")}`
    super(`${id === undefined ? "This action needs the id of a job." : `There is no job ${id}.`} ${there}`, {
      code: "job.unknown",
      recoverable: true,
    })
  }
}

/** Shows and ends what bash left running. Asks nothing: the commands were allowed when they were started. */
export const jobTool = define("job", {
  description: readText(new URL("./job.md", import.meta.url)),
  parameters,
  access: "execute",
  async execute(args, ctx) {
    if (args.action === "list") return list(jobsOf(ctx))
    const job = jobNamed(args.id, ctx)
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
  const time = formatSeconds((info.endedAt ?? Date.now()) - info.startedAt)
  const [firstLine = ""] = info.command.split("\n")
  const command = firstLine.length > shownCommand ? `${firstLine.slice(0, shownCommand)}…` : firstLine
  return `${info.id} · ${info.status} · ${time} · ${info.bytes} bytes · ${command}`
}
