import * as z from "zod"
import { define, type Info } from "../tool/tool.ts"
import { describeIssues } from "../tool/validate.ts"
import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { parseJson } from "../util/json.ts"
import type { Exit, RunningProcess } from "../util/process.ts"
import { createErrorTail, describeExit, type Program, startProgram } from "./program.ts"
import { ExternalToolError, Manifest } from "./protocol.ts"
import { runProgram } from "./run.ts"

/** Time limit in milliseconds for a call if the manifest sets no `timeout`. `bash` has the same limit. */
const defaultTimeoutMs = 120_000

/**
 * Creates a tool from a program. Runs the program with `--describe`, so the program must be trusted. Throws the errors
 * that {@link startProgram} throws, `ExternalToolError` if the program does not print a valid manifest in time, and
 * `TypeError` if the tool id is invalid.
 */
export async function externalTool(program: Program, describeLimitMs?: number): Promise<Info> {
  const {
    description,
    parameters,
    timeout = defaultTimeoutMs,
  } = await describeProgram(program, describeLimitMs)
  const schema = parametersOf(parameters)
  return define(program.name, {
    description,
    parameters: schema,
    timeout,
    execute: (args, ctx) => runProgram(program, args, ctx),
  })
}

/**
 * Returns a schema that validates arguments against the JSON Schema. Rejects unknown keys unless the JSON Schema sets
 * `additionalProperties`. Models receive the JSON Schema with `additionalProperties` set. Throws {@link
 * ExternalToolError} if the JSON Schema is not supported.
 */
function parametersOf(given: Record<string, unknown>): z.ZodType<Record<string, unknown>> {
  const schema = { additionalProperties: false, ...given }
  if (given.type !== "object")
    throw new ExternalToolError('--describe printed "parameters" that are not of type "object".', "manifest")
  const checked = checkerOf(schema).pipe(z.record(z.string(), z.unknown()))
  // Zod uses this function instead of generating a JSON Schema.
  checked._zod.toJSONSchema = () => structuredClone(schema)
  return checked
}

function checkerOf(schema: Record<string, unknown>): z.ZodType {
  try {
    return z.fromJSONSchema(schema)
  } catch (error) {
    throw new ExternalToolError(
      `--describe printed "parameters" with an unsupported schema: ${errorMessage(error)}. Describe the unsupported rule in the description, and check it in the tool.`,
      "manifest",
    )
  }
}

/** Maximum size of a manifest, in bytes. Models read the manifest at every step, so a larger one is an error. */
const maxManifestBytes = 256 * 1024

/**
 * Runs the program with `--describe` and returns its manifest. Throws {@link ExternalToolError} if the program exceeds
 * `limitMs`, fails, prints too much, or prints an invalid manifest.
 */
async function describeProgram(program: Program, limitMs = 10_000): Promise<Manifest> {
  const tail = createErrorTail()
  const failed = (problem: string) =>
    new ExternalToolError(`--describe ${problem.replace(/\.$/, "")}${tail.reason()}.`, "manifest")
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
    if (exit === undefined) throw failed(`did not finish within ${limitMs} ms and was killed.`)
    if (exit === "too much") throw failed(`printed more than ${maxManifestBytes} bytes and was killed.`)
    if (exit.code !== 0) throw failed(`ended with ${describeExit(exit)}.`)
  } finally {
    await child.kill()
  }
  return readManifest(Buffer.concat(parts).toString(), program.name, failed)
}

async function endOf(child: RunningProcess): Promise<Exit> {
  const [exit] = await Promise.all([child.exited, child.closed])
  return exit
}

function readManifest(text: string, name: string, failed: (problem: string) => Error): Manifest {
  const parsed = parseJson(text)
  if (!parsed.ok) throw failed(`did not print a JSON object: ${parsed.error}.`)
  const read = Manifest.safeParse(parsed.value, { reportInput: true })
  if (!read.success) throw failed(`printed an invalid manifest: ${describeIssues(read.error)}.`)
  if (read.data.name === name) return read.data
  throw failed(
    `printed the name "${read.data.name}", but the name of the file without its extension is "${name}". Use the same name for both.`,
  )
}
