import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { Program } from "../../src/external-tool/program.ts"

/** A directory that goes with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "tackle-external-"))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** An executable with this text, as the program `probe`. */
export function makeProgram(text: string, directory = temporaryDirectory()): Program {
  const path = join(directory, "probe")
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  const environment = { PATH: process.env.PATH }
  return { name: "probe", path, host: { directory, copies: join(directory, "copies"), environment } }
}

/** One in this Node: `read(line => …)` gives it the lines it gets as values, `write(value)` writes one. */
export function nodeProgram(body: string): Program {
  return makeProgram(`#!${process.execPath}
const write = (value) => process.stdout.write(JSON.stringify(value) + "\\n")
const read = (take) => require("node:readline").createInterface({ input: process.stdin })
  .on("line", (line) => take(JSON.parse(line)))
${body}
`)
}
