import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { copyText } from "../../src/tui/clipboard.ts"

const directory = mkdtempSync(join(tmpdir(), "tackle-clipboard-"))
afterAll(() => rmSync(directory, { recursive: true }))

function program(name: string, script: string): void {
  writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`)
  chmodSync(join(directory, name), 0o755)
}

/** Copies "good day" and returns what was written to the terminal. */
async function copied(env: Record<string, string>): Promise<string> {
  const written: string[] = []
  const terminal = { write: (text: string) => void written.push(text) }
  await copyText("good day", { env: { PATH: `${directory}:${process.env.PATH}`, ...env }, terminal })
  return written.join("")
}

const sequence = `\u001b]52;c;${Buffer.from("good day").toString("base64")}\u0007`

test("copies with a program of the desktop, and otherwise through the terminal", async () => {
  expect(await copied({})).toBe(sequence)
  program("wl-copy", `cat > "${directory}/copied"`)
  expect(await copied({ WAYLAND_DISPLAY: "wayland-0" })).toBe("")
  expect(readFileSync(join(directory, "copied"), "utf8")).toBe("good day")
  program("wl-copy", "exit 1")
  program("xclip", `cat > "${directory}/copied-x"`)
  expect(await copied({ WAYLAND_DISPLAY: "wayland-0", DISPLAY: ":0" })).toBe("")
  expect(readFileSync(join(directory, "copied-x"), "utf8")).toBe("good day")
  expect(await copied({ WAYLAND_DISPLAY: "wayland-0" })).toBe(sequence)
})
