import { chmod } from "node:fs/promises"
import { afterEach, expect, onTestFinished, test, vi } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import { openInputPipe, PipeError } from "../../src/util/pipe.ts"

afterEach(() => {
  vi.unstubAllEnvs()
})

test("names a missing temporary directory as the cause", async () => {
  vi.stubEnv("TMPDIR", "/none")
  const failure = await openInputPipe().catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(PipeError)
  expect(failure).toMatchObject({ message: expect.stringMatching(/ENOENT.*\/none.*Set TMPDIR/) })
  expect(failure).not.toMatchObject({ message: expect.stringContaining("mkfifo") })
})

test("names a missing mkfifo as the cause", async () => {
  vi.stubEnv("PATH", "/nowhere")
  await expect(openInputPipe()).rejects.toThrow(/`mkfifo` was not found.*PATH/)
})

test("reports what mkfifo reports", async () => {
  const project = await temporaryProject({ "bin/mkfifo": "#!/bin/sh\necho no room >&2\nexit 1\n" })
  await chmod(project.path("bin/mkfifo"), 0o755)
  vi.stubEnv("PATH", project.path("bin"))
  onTestFinished(project.remove)
  await expect(openInputPipe()).rejects.toThrow(/could not be created: no room\. Set TMPDIR/)
})

test("names the limit of open files as the cause", () => {
  const cause = Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE", syscall: "open" })
  expect(new PipeError(cause).message).toMatch(/Too many files are open\..*ulimit/)
})
