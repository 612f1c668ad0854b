import { describeIssues } from "../tool/validate.ts"
import { within } from "../util/abort.ts"
import { parseJson } from "../util/json.ts"
import type { Exit, RunningProcess } from "../util/process.ts"
import { createErrorTail } from "./error-tail.ts"
import { ExternalToolError } from "./errors.ts"
import type { Program } from "./program.ts"
import { Manifest } from "./protocol.ts"
import { startProgram } from "./start.ts"

/** A manifest is read by every model at every turn: what is longer is a mistake. In bytes. */
const maxManifestBytes = 256 * 1024

/**
 * Runs the program with `--describe` and reads its manifest. Throws {@link ExternalToolError} where it takes longer than
 * `limitMs`, writes too much, fails, or prints something else.
 */
export async function describeProgram(program: Program, limitMs = 10_000): Promise<Manifest> {
  const tail = createErrorTail()
  const failed = (problem: string) => new ExternalToolError(`--describe ${problem}${tail.note()}`, "manifest")
  const parts: Buffer[] = []
  let bytes = 0
  const { promise: tooMuch, resolve: stop } = Promise.withResolvers<"too much">()
  const child = await startProgram(program, {
    args: ["--describe"],
    cwd: program.host.directory,
    onOutput(piece) {
      bytes += piece.length
      if (bytes > maxManifestBytes) stop("too much")
      else parts.push(Buffer.from(piece))
    },
    onErrorOutput: tail.push,
  })
  try {
    const exit = await within(Promise.race([endOf(child), tooMuch]), limitMs)
    if (exit === undefined) throw failed(`was not done within ${limitMs} ms and was ended.`)
    if (exit === "too much") throw failed(`printed more than ${maxManifestBytes} bytes and was ended.`)
    if (exit.code !== 0) throw failed(`ended with ${shownExit(exit)}.`)
  } finally {
    await child.kill()
  }
  return readManifest(Buffer.concat(parts).toString(), program.name, failed)
}

/** How a program ended, for messages. */
export function shownExit({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : `the signal ${signal}`
}

async function endOf(child: RunningProcess): Promise<Exit> {
  const [exit] = await Promise.all([child.exited, child.closed])
  return exit
}

function readManifest(text: string, name: string, failed: (problem: string) => Error): Manifest {
  const parsed = parseJson(text)
  if (!parsed.ok) throw failed(`printed no JSON object: ${parsed.error}.`)
  const read = Manifest.safeParse(parsed.value, { reportInput: true })
  if (!read.success) throw failed(`printed a manifest that does not fit: ${describeIssues(read.error)}.`)
  if (read.data.name === name) return read.data
  throw failed(
    `printed the name "${read.data.name}", but the file is named for the tool "${name}", and trust shows that. Rename one of them.`,
  )
}
