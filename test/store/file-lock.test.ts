import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createSharedLocks, withFileLock } from "../../src/store/file-lock.ts"
import { temporaryProject } from "../../src/testing/project.ts"

async function directory(): Promise<string> {
  const project = await temporaryProject()
  onTestFinished(project.remove)
  return project.directory
}

const source = JSON.stringify(join(import.meta.dirname, "../../src/store/file-lock.ts"))

/**
 * Starts a process that runs the code with the functions of `file-lock.ts` and prints `held` when it holds the lock.
 */
async function holder(code: string) {
  const text = `import { createSharedLocks, withFileLock } from ${source}\n${code}`
  const child = spawn(process.execPath, ["--input-type=module", "-e", text], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  await once(child.stdout, "data")
  return child
}

test("releases the lock of a killed process", async () => {
  const path = join(await directory(), "file.json")
  const child = await holder(`withFileLock(${JSON.stringify(path)}, "test", () => {
    process.stdout.write("held")
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`)
  child.kill("SIGKILL")
  await once(child, "exit")
  expect(withFileLock(path, "test", () => "mine")).toBe("mine")
})

test("waits for a shared lock of another process, until that process is killed", async () => {
  const locks = join(await directory(), "locks")
  const child = await holder(`await createSharedLocks(${JSON.stringify(locks)}, () => {}).run(["/a"], () => {
    process.stdout.write("held")
    return new Promise((resolve) => setTimeout(resolve, 100_000))
  })`)
  const order: string[] = []
  const shared = createSharedLocks(locks, (error) => expect.unreachable(String(error)))
  const mine = shared.run(["/a"], async () => order.push("a"))
  await shared.run(["/b"], async () => order.push("b"))
  child.kill("SIGKILL")
  await mine
  expect(order).toEqual(["b", "a"])
})

test("works without shared locks if their files cannot be created, and reports it once", async () => {
  const problems: unknown[] = []
  const shared = createSharedLocks("/dev/null/locks", (error) => problems.push(error))
  expect(await shared.run(["/a", "/b"], async () => "done")).toBe("done")
  expect(await shared.run(["/a"], async () => "done")).toBe("done")
  expect(problems).toHaveLength(1)
})
