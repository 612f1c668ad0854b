import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, expect, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"
import type { Job } from "../../src/tool/context.ts"
import { runTool } from "../../src/tool/run.ts"
import { createJobTable, type JobTable } from "../../src/tools/bash/background-jobs.ts"
import { createBashTool } from "../../src/tools/bash/bash.ts"
import { JobInputError, jobTool, UnknownJobError } from "../../src/tools/bash/job.ts"

let directory: string
let jobs: JobTable
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "job-"))
  jobs = createJobTable()
})
afterEach(async () => {
  await jobs.killAll()
  rmSync(directory, { recursive: true, force: true })
})

function context(sessionID = "ses_test") {
  return fakeContext({ directory, jobs, sessionID })
}

async function job(args: Record<string, unknown>, ctx = context()) {
  return runTool({ id: "job", definition: await jobTool.init() }, args, ctx)
}

async function start(command: string, more: Record<string, unknown> = {}): Promise<string> {
  const environment = () => ({ PATH: "/usr/local/bin:/usr/bin:/bin" })
  const definition = await createBashTool({ environment }).init()
  const result = await runTool({ id: "bash", definition }, { command, ...more }, context())
  return String(result.metadata.jobID)
}

test("list: shows each job with its state", async () => {
  expect((await job({ action: "list" })).output).toBe("No background jobs.")
  const first = await start("echo hello; sleep 30 &")
  const second = await start("sleep 30 &")
  await job({ action: "kill", id: second })
  const { title, output } = await job({ action: "list" })
  expect(title).toBe("1 running, 1 ended")
  const lines = output.split("\n")
  expect(lines[0]).toMatch(
    new RegExp(`^${first} · running · \\d+\\.\\d s · 6 bytes · echo hello; sleep 30 &$`),
  )
  expect(lines[1]).toMatch(new RegExp(`^${second} · killed · `))
})

test("output: shows the output so far and the state, also after the end", async () => {
  const id = await start("(echo one; sleep 1; echo two) &")
  while (jobs.get(id)?.info().bytes === 0) await delay(5)
  expect((await job({ action: "output", id })).output).toMatch(new RegExp(`^one\\n\\[${id} · running · `))
  while (jobs.get(id)?.info().status === "running") await delay(5)
  const { output, metadata } = await job({ action: "output", id })
  expect(output).toMatch(new RegExp(`^one\\ntwo\\n\\[${id} · exited · `))
  expect(metadata).toMatchObject({ truncated: false, job: { id, status: "exited" } })
})

test("input: writes lines, closes the input and returns the reply", async () => {
  const id = await start('while read line; do echo "got $line"; done; echo end', { stdin: true })
  const ctx = context()
  expect((await job({ action: "input", id, text: "one" }, ctx)).output).toMatch(/^got one\n\[/)
  expect(ctx.asked).toMatchObject([
    { permission: "bash", metadata: { input: "one", job: id, workdir: directory } },
  ])
  await job({ action: "input", id, text: "tw", newline: false })
  expect((await job({ action: "input", id, text: "o", close: true })).output).toMatch(
    /^got one\ngot two\nend\n\[.*exited/,
  )
  await expect(job({ action: "input", id, text: "x" })).rejects.toThrow(
    /does not accept input: it has exited/,
  )
})

test("input: writes nothing that the rules refuse", async () => {
  const id = await start("cat", { stdin: true })
  const ctx = fakeContext({
    directory,
    jobs,
    onAsk: () => {
      throw new Error("refused")
    },
  })
  await expect(job({ action: "input", id, text: "x" }, ctx)).rejects.toThrow("refused")
  expect((await job({ action: "output", id })).output).toMatch(/^\(no output\)/)
})

test("input: rejects a job that was started without input", async () => {
  const id = await start("sleep 30 &")
  await expect(job({ action: "input", id, text: "x" })).rejects.toThrow(JobInputError)
})

test("a command with open input that ends at once is not a job", async () => {
  expect(await start("echo done", { stdin: true })).toBe("undefined")
})

test("kill: ends the job; a second call does nothing", async () => {
  const id = await start("sleep 30 & echo $!")
  expect((await job({ action: "kill", id })).title).toBe(`${id} killed`)
  expect((await job({ action: "kill", id })).title).toBe(`${id} killed`)
})

test("an unknown or missing id is an error that lists the jobs", async () => {
  await expect(job({ action: "kill", id: "job_none" })).rejects.toThrow(
    "Job job_none does not exist. This session has no jobs.",
  )
  const id = await start("sleep 30 &")
  await expect(job({ action: "output", id: "job_none" })).rejects.toThrow(UnknownJobError)
  await expect(job({ action: "output", id: "job_none" })).rejects.toThrow(id)
  await expect(job({ action: "output" })).rejects.toThrow("requires a job id")
})

test("another session cannot see or kill a job", async () => {
  const id = await start("sleep 30 &")
  const other = context("ses_other")
  expect((await job({ action: "list" }, other)).output).toBe("No background jobs.")
  await expect(job({ action: "kill", id }, other)).rejects.toThrow(UnknownJobError)
  expect(jobs.get(id)?.info().status).toBe("running")
})

test("the table drops the oldest ended jobs and no running ones", async () => {
  const running = await start("sleep 30 &")
  for (let index = 0; index < 40; index += 1) jobs.add(ended(`job_${index}`))
  const ids = jobs.list().map((info) => info.id)
  expect(ids[0]).toBe(running)
  expect(ids.slice(1)).toEqual(Array.from({ length: 32 }, (_, index) => `job_${index + 8}`))
})

function ended(id: string): Job {
  return {
    info: () => ({
      id,
      sessionID: "ses_test",
      command: "",
      status: "exited",
      startedAt: 0,
      endedAt: 1,
      bytes: 0,
    }),
    output: () => ({ text: "", truncated: false }),
    kill: async () => {},
  }
}
