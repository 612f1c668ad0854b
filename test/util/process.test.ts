import { readdirSync, readFileSync } from "node:fs"
import { setTimeout as delay } from "node:timers/promises"
import { afterEach, describe, expect, test } from "vitest"
import { type RunningProcess, SpawnError, startProcess } from "../../src/util/process.ts"
import { readProcess } from "../../src/util/process-table.ts"
import { isGroupAlive, killOrphans, killTree } from "../../src/util/process-tree.ts"

/** Other systems have no `/proc`, and only the process group can be found. */
const linux = process.platform === "linux"

const started: RunningProcess[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((process) => process.kill()))
})

async function start(
  script: string,
  more: { cwd?: string; env?: Record<string, string>; input?: boolean } = {},
) {
  let output = ""
  const process = await startProcess({
    argv: ["/bin/sh", "-c", script],
    cwd: more.cwd ?? "/",
    input: more.input ?? false,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", ...more.env },
    onOutput: (bytes) => {
      output += Buffer.from(bytes).toString()
    },
  })
  started.push(process)
  return { process, output: () => output }
}

/** Waits until a script has printed `count` numbers, one per line, and returns them. */
async function numbers(output: () => string, count: number): Promise<number[]> {
  await until(() => output().split("\n").length > count)
  return output().trim().split("\n").map(Number)
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await delay(5)
}

function alive(pid: number): boolean {
  return readProcess(pid)?.alive === true
}

describe("output and end", () => {
  test("delivers both outputs in the order of writing, completely", async () => {
    const { process, output } = await start("for i in 1 2 3; do echo o$i; echo e$i >&2; done; printf end")
    expect(await process.exited).toEqual({ code: 0, signal: null })
    await process.closed
    expect(output()).toBe("o1\ne1\no2\ne2\no3\ne3\nend")
    expect(process.running()).toBe(false)
  })

  test("delivers standard error separately and closes both outputs", async () => {
    const heard = { output: "", errors: "" }
    const process = await startProcess({
      argv: ["/bin/sh", "-c", "echo out; echo err >&2; exec >&-; sleep 0.05; printf late >&2"],
      cwd: "/",
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      onOutput: (bytes) => {
        heard.output += Buffer.from(bytes).toString()
      },
      onErrorOutput: (bytes) => {
        heard.errors += Buffer.from(bytes).toString()
      },
    })
    started.push(process)
    await Promise.all([process.exited, process.closed])
    expect(heard).toEqual({ output: "out\n", errors: "err\nlate" })
    expect(process.running()).toBe(false)
  })

  test("reports exit code and signal", async () => {
    expect(await (await start("exit 7")).process.exited).toEqual({ code: 7, signal: null })
    expect(await (await start("kill -9 $$")).process.exited).toEqual({ code: null, signal: "SIGKILL" })
  })

  test("gives the program a pipe that can be opened by name", async () => {
    const { process, output } = await start(
      "echo out > /dev/stdout; echo err > /dev/stderr; test -p /dev/fd/1 && echo pipe",
    )
    await process.closed
    expect(output()).toBe("out\nerr\npipe\n")
  })

  test("closes the input by default", async () => {
    const { process, output } = await start("read line || echo none")
    await process.closed
    expect(output()).toBe("none\n")
  })

  test("keeps an open input until it is ended", async () => {
    const { process, output } = await start("test -p /dev/stdin && echo pipe; cat /dev/stdin; echo end", {
      input: true,
    })
    await process.input?.write("one\n")
    await until(() => output() === "pipe\none\n")
    await process.input?.write("two\n")
    process.input?.end()
    await process.closed
    expect(output()).toBe("pipe\none\ntwo\nend\n")
    await expect(process.input?.write("late")).rejects.toThrow()
  })

  test("waits for the program to read more input than a pipe holds", async () => {
    const { process, output } = await start("sleep 0.2; wc -c", { input: true })
    await process.input?.write("x".repeat(300_000))
    process.input?.end()
    await process.closed
    expect(output().trim()).toBe("300000")
  })

  test("rejects writes to a program that stopped reading or was killed", async () => {
    const closed = await start("exec <&-; sleep 30", { input: true })
    await until(() => closed.process.running())
    await delay(50)
    await expect(closed.process.input?.write("x")).rejects.toThrow()
    const killed = await start("sleep 30", { input: true })
    await killed.process.kill()
    await expect(killed.process.input?.write("x")).rejects.toThrow()
  })

  test("continues after the program closes its output", async () => {
    const { process } = await start("exec >&- 2>&-; sleep 0.1; exit 5")
    await process.closed
    expect(process.running()).toBe(true)
    expect(await process.exited).toEqual({ code: 5, signal: null })
  })

  test("uses only the given directory and environment", async () => {
    const { process, output } = await start('pwd; echo "$A-$HOME"', { cwd: "/usr", env: { A: "1" } })
    await process.closed
    expect(output()).toBe("/usr\n1-\n")
  })

  test("keeps the output open while a background process holds it", async () => {
    const { process } = await start("sleep 30 &")
    await process.exited
    expect(process.running()).toBe(true)
    await process.kill()
    await process.closed
    expect(process.running()).toBe(false)
  })
})

describe("a program that cannot start", () => {
  const options = { cwd: "/", env: {}, onOutput: () => {} }

  test("reports the program and the reason", async () => {
    await expect(startProcess({ ...options, argv: ["/nowhere/program"] })).rejects.toThrow(SpawnError)
    await expect(startProcess({ ...options, argv: ["/nowhere/program"] })).rejects.toThrow(
      /\/nowhere\/program could not be started: .*ENOENT/,
    )
  })

  test("reports arguments that are too long", async () => {
    const long = "x".repeat(3_000_000)
    await expect(startProcess({ ...options, argv: ["/bin/echo", long] })).rejects.toThrow(
      "Put long text into a file",
    )
  })

  test.each(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"])("blames the system for %s", (code) => {
    const { message } = new SpawnError("git", Object.assign(new Error(`spawn git ${code}`), { code }))
    expect(message).toContain(`${code}. The system has no free processes, memory or files.`)
    expect(message).not.toContain("exist")
  })

  test.runIf(linux)("leaves no descriptor open", async () => {
    await expect(startProcess({ ...options, argv: ["/nowhere/program"] })).rejects.toThrow()
    const before = openDescriptors()
    for (let call = 0; call < 60; call += 1) {
      await expect(startProcess({ ...options, argv: ["/nowhere/program"] })).rejects.toThrow()
    }
    // Pipes wait in batches of eight for the next calls: 16 ends at most.
    expect(openDescriptors() - before).toBeLessThanOrEqual(16)
  })
})

test.runIf(linux)("leaves no child and no descriptor after a hundred processes", async () => {
  await (await start("true")).process.closed
  const before = openDescriptors()
  for (let round = 0; round < 10; round += 1) {
    const batch = await Promise.all(Array.from({ length: 10 }, () => start("echo $$")))
    for (const { process } of batch) {
      await process.exited
      await process.closed
    }
  }
  started.length = 0
  expect(openDescriptors() - before).toBeLessThanOrEqual(16)
  expect(childrenOfThis()).toEqual([])
})

describe.runIf(linux)("ending a tree", () => {
  test("kills a grandchild that ignores SIGTERM after the grace period", async () => {
    const { process, output } = await start(
      `sh -c 'trap "" TERM; echo $$; while :; do sleep 0.1; done' & echo $$; wait`,
    )
    const pids = await numbers(output, 2)
    const group = process.identity?.group ?? 0
    expect(pids).toContain(group)
    await killTree({ group, mark: "none" }, 100)
    expect(pids.map(alive)).toEqual([false, false])
  })

  test("lets a process clean up after SIGTERM", async () => {
    const { process, output } = await start(
      `trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.02; done`,
    )
    await until(() => output().includes("ready"))
    await process.kill()
    expect(output()).toMatch(/cleaned\n$/)
    expect(await process.exited).toEqual({ code: 0, signal: null })
  })

  test("ends a stopped process", async () => {
    const { process } = await start("kill -STOP $$; sleep 30")
    const group = process.identity?.group ?? 0
    await until(() => / T /.test(readFileSync(`/proc/${group}/stat`, "utf8")))
    await process.kill()
    expect(await process.exited).toEqual({ code: null, signal: "SIGTERM" })
  })

  test("ends processes in their own session and orphaned daemons", async () => {
    const { process, output } = await start(
      "setsid sh -c 'echo $$; exec sleep 30' & (setsid sh -c 'echo $$; exec sleep 30' &); wait",
    )
    const pids = await numbers(output, 2)
    expect(pids.map(alive)).toEqual([true, true])
    await process.kill()
    expect(pids.map(alive)).toEqual([false, false])
  })

  test("does not count a zombie as alive", async () => {
    // The shell becomes `sleep`, which never collects its child.
    const { process, output } = await start("sh -c 'echo $$' & exec sleep 30")
    const [child = 0] = await numbers(output, 1)
    await until(() => readProcess(child)?.alive === false)
    const group = process.identity?.group ?? 0
    expect(isGroupAlive(group)).toBe(true)
    await process.kill()
    expect(isGroupAlive(group)).toBe(false)
  })
})

describe.runIf(linux)("after a crash", () => {
  test("ends what a crash left, even if only a daemon remains", async () => {
    const { process, output } = await start("(setsid sh -c 'echo $$; exec sleep 30' &)")
    const [daemon = 0] = await numbers(output, 1)
    await process.exited
    const identity = process.identity
    if (!identity) throw new Error("no identity")
    expect(alive(daemon)).toBe(true)
    expect(await killOrphans(identity, 100)).toBe(true)
    expect(alive(daemon)).toBe(false)
    expect(await killOrphans(identity, 100)).toBe(false)
  })

  test("spares an unrelated process with the same number, and everything after a reboot", async () => {
    const { process } = await start("sleep 30")
    const identity = process.identity
    if (!identity) throw new Error("no identity")
    const earlier = { ...identity, startTime: identity.startTime - 1, mark: "TACKLE_PROCESS=other" }
    expect(await killOrphans(earlier, 100)).toBe(false)
    expect(await killOrphans({ ...identity, bootID: "another boot" }, 100)).toBe(false)
    expect(alive(identity.group)).toBe(true)
  })
})

function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length
}

function childrenOfThis(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry) => entry?.parent === process.pid)
    .map((entry) => entry?.pid ?? 0)
}

test("reads paced output for a small part of the time, and loses nothing", async () => {
  const bytes = 10_000_000
  let [received, busyMs] = [0, 0]
  const start = performance.now()
  const process = await startProcess({
    argv: ["/bin/sh", "-c", `head -c ${bytes} /dev/zero`],
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    paced: true,
    onOutput(chunk) {
      received += chunk.length
      const since = performance.now()
      while (performance.now() - since < 1);
      busyMs += performance.now() - since
    },
  })
  started.push(process)
  await process.closed
  expect(received).toBe(bytes)
  expect(busyMs).toBeLessThan((performance.now() - start) / 2)
})
