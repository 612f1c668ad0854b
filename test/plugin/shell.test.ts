import { describe, expect, test } from "vitest"
import { createShell } from "../../src/plugin/shell.ts"

function shell(signal = new AbortController().signal) {
  return createShell({ cwd: import.meta.dirname, environment: process.env, signal })
}

describe("a failed shell command of a plugin", () => {
  test("reports its exit code and the end of stderr", async () => {
    await expect(shell()`echo oops >&2; exit 3`).rejects.toThrow(
      /^"echo oops >&2; exit 3" ended with exit code 3: oops$/,
    )
  })

  test("reports the signal that ended it", async () => {
    await expect(shell()`kill -KILL $$`).rejects.toThrow(/^"kill -KILL \$\$" was ended by SIGKILL$/)
  })

  test("reports that its output exceeded the limit", async () => {
    await expect(shell()`yes`).rejects.toThrow(/^"yes" was stopped, because its output exceeded 32 MiB$/)
  })

  test("reports that its output exceeded the limit, even if it ends with exit code 0", async () => {
    const running = shell()`trap '' TERM; head -c 34000000 /dev/zero; exit 0`
    // Not `rejects`, which would print the whole output if the command succeeds.
    const end = await running.then(() => "it succeeded", String)
    expect(end).toMatch(/was stopped, because its output exceeded 32 MiB$/)
  })

  test("reports that Tackle is closing", async () => {
    const closing = new AbortController()
    const running = shell(closing.signal)`sleep 60`.text()
    setTimeout(() => closing.abort(), 50)
    await expect(running).rejects.toThrow(/^"sleep 60" was stopped, because Tackle is closing$/)
  })
})
