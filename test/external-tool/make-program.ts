import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { Program } from "../../src/external-tool/program.ts"

/** Creates a directory that is removed after the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), "tackle-external-"))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Creates an executable file with this text, and returns it as the program `probe`. */
export function makeProgram(text: string, directory = temporaryDirectory()): Program {
  const path = join(directory, "probe")
  writeFileSync(path, text)
  chmodSync(path, 0o755)
  const environment = { PATH: process.env.PATH }
  return { name: "probe", path, host: { directory, copies: join(directory, "copies"), environment } }
}

/**
 * Creates a program that runs a script in this Node. In the script, `read(take)` passes each line of the input, parsed
 * as JSON, to `take`, and `write(value)` writes a line.
 */
export function nodeProgram(body: string): Program {
  return makeProgram(`#!${process.execPath}
const write = (value) => process.stdout.write(JSON.stringify(value) + "\\n")
const read = (take) => require("node:readline").createInterface({ input: process.stdin })
  .on("line", (line) => take(JSON.parse(line)))
${body}
`)
}
