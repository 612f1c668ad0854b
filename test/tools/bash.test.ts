import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { NotDirectoryError, PathNotFoundError } from "../../src/files/file-errors.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import type { ToolContext } from "../../src/tool/context.ts"
import { runTool } from "../../src/tool/run.ts"
import { createSpillOpener } from "../../src/tool/spill.ts"
import { createJobTable, type JobTable } from "../../src/tools/bash/background-jobs.ts"
import { type BashOptions, createBashTool } from "../../src/tools/bash/bash.ts"
import { AbortedError } from "../../src/util/abort.ts"
import { readProcess } from "../../src/util/process-table.ts"
import { isGroupAlive } from "../../src/util/process-tree.ts"

let directory: string
let jobs: JobTable
let ctx: FakeContext

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "bash-")))
  jobs = createJobTable()
  ctx = context()
})
afterEach(async () => {
  await jobs.killAll()
  rmSync(directory, { recursive: true, force: true })
})

function context(more: Partial<ToolContext> = {}): FakeContext {
  const spill = createSpillOpener({ directory: join(directory, "spill"), name: "call" })
  return fakeContext({ directory, jobs, spill, ...more })
}

async function bash(args: Record<string, unknown>, options: Partial<BashOptions> = {}, where = ctx) {
  const environment = () => ({ PATH: "/usr/local/bin:/usr/bin:/bin" })
  const definition = await createBashTool({ environment, ...options }).init()
  return runTool({ id: "bash", definition }, args, where)
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5)
}

function alive(pid: number): boolean {
  return readProcess(pid)?.alive === true
}

/** Waits until a command has written this many numbers to a file, one per line, and returns them. */
async function pidsIn(file: string, count: number): Promise<number[]> {
  const read = () => {
    try {
      return readFileSync(join(directory, file), "utf8").trim().split("\n").filter(Boolean).map(Number)
    } catch {
      return []
    }
  }
  await until(() => read().length >= count)
  return read()
}

describe("the output for the model", () => {
  test("contains output, exit code and duration", async () => {
    const result = await bash({ command: "echo out; echo err >&2; echo out2" })
    expect(result.output).toMatch(/^out\nerr\nout2\n\[exit code 0 · \d+\.\d s\]$/)
    expect(result.metadata).toMatchObject({ exit: 0, truncated: false, output: "out\nerr\nout2\n" })
    expect(result.metadata.durationMs).toBeTypeOf("number")
  })

  test("an exit code other than 0 is a result", async () => {
    const result = await bash({ command: "echo no; exit 3" })
    expect(result.output).toMatch(/^no\n\[exit code 3 · /)
    expect(result.metadata.exit).toBe(3)
  })

  test("names the signal", async () => {
    const result = await bash({ command: "kill -KILL $$" })
    expect(result.output).toMatch(/^\(no output\)\n\[killed by SIGKILL · /)
    expect(result.metadata).toMatchObject({ exit: null, signal: "SIGKILL" })
  })

  test("says so if there is no output or no text in it", async () => {
    expect((await bash({ command: "true" })).output).toMatch(/^\(no output\)\n\[exit code 0/)
    expect((await bash({ command: "head -c 500 /dev/zero" })).output).toMatch(
      /^\(500 bytes, no printable text\)\n/,
    )
  })

  test("accepts bytes that are not UTF-8", async () => {
    expect((await bash({ command: "printf 'a\\377b\\n'" })).output).toMatch(/^a�b\n\[/)
  })

  test("contains no terminal control sequences", async () => {
    const result = await bash({ command: "printf '\\033[31mred\\033[0m\\n1%%\\r2%%\\r3%%\\r\\n'" })
    expect(result.output).toMatch(/^red\n3%\n\[/)
    expect(result.metadata.output).toBe("red\n3%\n")
  })

  // On a busy machine, the helper can need more than the 50 ms for which the tool waits.
  test("includes output of helpers that end shortly after the shell", { retry: 5 }, async () => {
    const shell = { shell: "/bin/bash" }
    const result = await bash({ command: "echo x > >(sleep 0.01; cat)" }, shell)
    expect(result.output).toMatch(/^x\n\[exit code 0 · \d\.\d s\]$/)
  })

  test("waits longer for helpers of a shell that ran longer", async () => {
    const shell = { shell: "/bin/bash" }
    const result = await bash({ command: "sleep 0.3; echo x > >(sleep 0.2; cat)" }, shell)
    expect(result.output).toMatch(/^x\n\[exit code 0 · \d\.\d s\]$/)
  })

  test("passes a command with many lines and quotes to the shell unchanged", async () => {
    const result = await bash({ command: "cat <<'EOF'\n$HOME \"quoted\" 'single'\nEOF\n" })
    expect(result.output).toMatch(/^\$HOME "quoted" 'single'\n\[/)
  })
})

describe("permission and environment", () => {
  test("asks for the whole command before anything runs", async () => {
    const refused = new Error("refused")
    const where = context()
    const asking = { ...where, ask: () => Promise.reject(refused) }
    await expect(bash({ command: "touch here" }, {}, asking)).rejects.toBe(refused)
    expect(() => statSync(join(directory, "here"))).toThrow("ENOENT")

    await bash({ command: "true", description: "Do nothing", workdir: "." })
    expect(ctx.asked).toEqual([
      {
        permission: "bash",
        patterns: ["true"],
        paths: [directory],
        metadata: { command: "true", workdir: directory, description: "Do nothing" },
      },
    ])
  })

  test("without a description the command is the title", async () => {
    expect((await bash({ command: "true" })).title).toBe("true")
    expect((await bash({ command: "true", description: "Nothing" })).title).toBe("Nothing")
  })

  test("passes only the host's environment", async () => {
    const environment = (command: string) => ({ SEEN: command, BASH_ENV: join(directory, "rc") })
    writeFileSync(join(directory, "rc"), "echo read the profile")
    const result = await bash({ command: 'echo "$SEEN|$HOME|$BASH_ENV"' }, { environment })
    expect(result.output).toMatch(/^echo "\$SEEN\|\$HOME\|\$BASH_ENV"\|\|\n\[/)
  })

  test("resolves workdir against the session's directory", async () => {
    mkdirSync(join(directory, "inner"))
    expect((await bash({ command: "pwd", workdir: "inner" })).output).toContain(join(directory, "inner"))
    expect((await bash({ command: "pwd", workdir: "/" })).output).toMatch(/^\/\n/)
    expect(ctx.asked.map((request) => request.paths)).toEqual([[join(directory, "inner")], ["/"]])
  })

  test("rejects a workdir that is missing or a file", async () => {
    writeFileSync(join(directory, "file"), "")
    await expect(bash({ command: "true", workdir: "inner" })).rejects.toThrow(PathNotFoundError)
    await expect(bash({ command: "true", workdir: "file" })).rejects.toThrow(NotDirectoryError)
  })

  test("rejects a timeout outside the range and says what to do", async () => {
    await expect(bash({ command: "true", timeout: 0 })).rejects.toThrow(/timeout/)
    await expect(bash({ command: "true", timeout: 3_600_001 })).rejects.toThrow(/one hour.*as a job/)
  })

  test("reports a command that is longer than the system allows", async () => {
    await expect(bash({ command: `: ${"x".repeat(3_000_000)}` })).rejects.toThrow("Put long text into a file")
  })
})

describe("long output", () => {
  test("keeps both ends within 2,000 lines and 50 KB, and everything in the file", async () => {
    const result = await bash({ command: "seq 300000" })
    const path = join(directory, "spill", "tool_call_1.txt")
    expect(result.metadata).toMatchObject({ truncated: true, outputPath: path, originalSize: 1_988_895 })
    expect(statSync(path).size).toBe(1_988_895)
    expect(result.output).toMatch(/^\[Output truncated: 300000 lines/)
    expect(result.output).toContain("\n1\n2\n3\n")
    expect(result.output).toMatch(/\n299999\n300000\n\[exit code 0 · /)
    expect(result.output.split("\n").length).toBeLessThanOrEqual(2000)
    expect(Buffer.byteLength(result.output)).toBeLessThanOrEqual(51_200)
    expect(String(result.metadata.output).length).toBeLessThanOrEqual(30_000)
    expect(result.metadata.output).toMatch(/299999\n300000\n$/)
  })

  test("uses little memory for 100 MB", async () => {
    await bash({ command: "head -c 2000000 /dev/zero" })
    const before = process.memoryUsage().rss
    const result = await bash({ command: "head -c 100000000 /dev/zero | tr '\\0' x" })
    const grown = process.memoryUsage().rss - before
    expect(statSync(String(result.metadata.outputPath)).size).toBe(100_000_000)
    expect(grown).toBeLessThan(40_000_000)
  })

  test("returns a result with a note if the spill file cannot be written", async () => {
    writeFileSync(join(directory, "file"), "")
    const spill = createSpillOpener({ directory: join(directory, "file", "spill"), name: "call" })
    const result = await bash({ command: "seq 300000; exit 4" }, {}, context({ spill }))
    expect(result.output).toContain("could not be saved")
    expect(result.output).toMatch(/\n300000\n\[exit code 4 · /)
    expect(result.metadata.outputPath).toBeUndefined()
  })
})

describe("time and abort", () => {
  test("returns the output so far at a timeout", async () => {
    const result = await bash({ command: "echo before; sleep 30; echo after", timeout: 100 })
    expect(result.output).toMatch(/^before\n\[timed out after 100 ms and was killed.* longer timeout/)
    expect(result.metadata).toMatchObject({ timedOut: true, exit: null })
  })

  test("the default timeout is the host's", async () => {
    const result = await bash({ command: "sleep 30" }, { defaultTimeout: 50 })
    expect(result.output).toContain("timed out after 50 ms")
  })

  test("kills the whole tree at a timeout", async () => {
    const command =
      "echo $$ > pids; sh -c 'echo $$ >> pids; sleep 30' & (setsid sh -c 'echo $$ >> pids; sleep 30' &); wait"
    const call = bash({ command, timeout: 300 })
    const pids = await pidsIn("pids", 3)
    await call
    expect(pids.map(alive)).toEqual([false, false, false])
  })

  test("kills the tree at an abort, throws, and reports the output so far", async () => {
    const controller = new AbortController()
    const where = context({ abort: controller.signal })
    const call = bash({ command: "echo $$ > pids; echo partial; sleep 30 & wait" }, {}, where)
    const pids = await pidsIn("pids", 1)
    await until(() => where.reported.some((update) => update.metadata?.output === "partial\n"))
    controller.abort()
    await expect(call).rejects.toThrow(AbortedError)
    expect(pids.map(alive)).toEqual([false])
    expect(where.reported.at(-1)?.metadata?.output).toBe("partial\n")
  })

  test("does not wait for the environment after an abort", async () => {
    const controller = new AbortController()
    const environment = () => {
      controller.abort()
      return new Promise<never>(() => {})
    }
    const where = context({ abort: controller.signal })
    await expect(bash({ command: "true" }, { environment }, where)).rejects.toThrow(AbortedError)
  })

  test("does not start a call that is already aborted", async () => {
    const where = context({ abort: AbortSignal.abort() })
    await expect(bash({ command: "touch here" }, {}, where)).rejects.toThrow(AbortedError)
    expect(() => statSync(join(directory, "here"))).toThrow("ENOENT")
  })

  test("runs calls in parallel", async () => {
    // Each command waits until all have started.
    const wait = "while [ $(ls up | wc -l) -lt 8 ]; do sleep 0.01; done"
    mkdirSync(join(directory, "up"))
    const calls = Array.from({ length: 8 }, (_, index) =>
      bash({ command: `touch up/${index}; ${wait}`, timeout: 10_000 }),
    )
    const results = await Promise.all(calls)
    expect(results.map((result) => result.metadata.exit)).toEqual(Array(8).fill(0))
  })
})

describe("progress", () => {
  test("records the process before the first report and removes the record at the end", async () => {
    const noted: unknown[] = []
    const record: BashOptions["record"] = ({ group }) => {
      noted.push([group, ctx.reported.length])
      return () => noted.push(group === undefined || isGroupAlive(group))
    }
    await bash({ command: "echo one; sleep 0.25; echo two", description: "Count" }, { record })
    const identity = { group: expect.any(Number), bootID: expect.any(String) }
    const known = process.platform === "linux" ? expect.objectContaining(identity) : undefined
    // The intent, then the process; then both records are removed.
    if (known) expect(noted).toEqual([[undefined, 0], [expect.any(Number), 0], true, false])
    expect(ctx.reported[0]).toMatchObject({ title: "Count", metadata: { process: known } })
    const outputs = ctx.reported.map((update) => update.metadata?.output)
    expect(outputs).toContain("one\n")
    expect(outputs.at(-1)).toBe("one\ntwo\n")
  })

  test("throttles reports and makes none after the end", async () => {
    const result = await bash({
      command:
        "for i in $(seq 300); do echo $i; sleep 0.001; done; sleep 0.15; (sleep 1; echo late; sleep 30) &",
    })
    const reports = ctx.reported.length
    // The first, the last, and ten per second between.
    expect(reports).toBeLessThanOrEqual(3 + Number(result.metadata.durationMs) / 100)
    await until(() => (jobs.list()[0]?.bytes ?? 0) > Buffer.byteLength(String(result.metadata.output)))
    await delay(150)
    expect(ctx.reported.length).toBe(reports)
  })

  test("kills the command when a report fails, and throws", async () => {
    const broken = new Error("the store is gone")
    const failing = { ...ctx, metadata: () => Promise.reject(broken) }
    await expect(bash({ command: "echo $$ > pid; sleep 30" }, {}, failing)).rejects.toBe(broken)
  })
})

describe("remaining processes", () => {
  test("become a job that the result does not wait for", async () => {
    const result = await bash({ command: "sleep 30 & echo started" })
    const [job] = jobs.list()
    expect(result.output).toMatch(
      /^started\n\[exit code 0 · \d\.\d s · continues in the background as job_\w+: /,
    )
    expect(result.metadata.jobID).toBe(job?.id)
    expect(job).toMatchObject({
      status: "running",
      sessionID: ctx.sessionID,
      command: "sleep 30 & echo started",
    })
  })

  test("become a job with redirected output and in another session", async () => {
    await bash({ command: "sleep 30 >/dev/null 2>&1 &" })
    await bash({ command: "setsid sleep 30 &" })
    await bash({ command: "set -m; sleep 30 &" })
    expect(jobs.list().map((job) => job.status)).toEqual(["running", "running", "running"])
  })

  test("that are daemons are not tracked", async () => {
    const result = await bash({
      command:
        "setsid sh -c 'echo $$ > pid; sleep 30' >/dev/null 2>&1 & until test -s pid; do sleep 0.01; done",
    })
    const [pid = 0] = await pidsIn("pid", 1)
    try {
      expect(result.metadata.jobID).toBeUndefined()
      expect(alive(pid)).toBe(true)
    } finally {
      process.kill(-pid, "SIGKILL")
    }
  })

  test("are captured in order after the result", async () => {
    const result = await bash({ command: "echo first; (sleep 0.2; echo second) &" })
    const job = jobs.get(String(result.metadata.jobID))
    await until(() => job?.info().status === "exited")
    expect(job?.output().text).toBe("first\nsecond\n")
    expect(job?.info()).toMatchObject({ bytes: 13, endedAt: expect.any(Number) })
  })

  test("with endless output use limited memory and can be killed", async () => {
    const spill = createSpillOpener({
      directory: join(directory, "spill"),
      name: "call",
      maxBytes: 1_000_000,
    })
    const result = await bash({ command: "yes & echo" }, {}, context({ spill }))
    const job = jobs.get(String(result.metadata.jobID))
    await until(() => (job?.info().bytes ?? 0) > 5_000_000)
    await job?.kill()
    const { text, truncated, outputPath = "" } = job?.output() ?? { text: "", truncated: false }
    expect(truncated).toBe(true)
    expect(text.length).toBeLessThanOrEqual(16_000)
    expect(statSync(outputPath).size).toBeGreaterThan(1_000_000)
    expect(statSync(outputPath).size).toBeLessThan(1_000_100)
    expect(job?.info().status).toBe("killed")
  })

  test("are killed without a job table", async () => {
    const { jobs: _, ...without } = context()
    const result = await bash({ command: "sleep 30 & echo $! > pid" }, {}, without)
    expect(result.output).toContain("processes that the command left running were killed")
    expect((await pidsIn("pid", 1)).map(alive)).toEqual([false])
  })

  test("are all killed by killAll", async () => {
    await bash({ command: "sleep 30 & echo $! >> pids" })
    await bash({ command: "sleep 30 & echo $! >> pids" })
    await jobs.killAll()
    expect((await pidsIn("pids", 2)).map(alive)).toEqual([false, false])
    expect(jobs.list().map((job) => job.status)).toEqual(["killed", "killed"])
  })
})
