import * as z from "zod"
import { define, type Info } from "../tool/tool.ts"
import { errorMessage } from "../util/errors.ts"
import { describeProgram } from "./describe.ts"
import { ExternalToolError } from "./errors.ts"
import type { Program } from "./program.ts"
import { runProgram } from "./run.ts"

/** How long a call may take where the manifest does not say: as long as a command of `bash`. In milliseconds. */
const defaultTimeoutMs = 120_000

/**
 * A program as a tool. Runs it with `--describe`: only for what is trusted. Throws `ExternalToolError`, `SpawnError`,
 * and `TypeError` for a name that is no tool id.
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
 * Checks arguments as the JSON Schema says, and is sent to models as that very schema. Like every tool's, it takes no
 * further keys unless it says otherwise. Throws {@link ExternalToolError} for what cannot be checked.
 */
export function parametersOf(given: Record<string, unknown>): z.ZodType<Record<string, unknown>> {
  const schema = { additionalProperties: false, ...given }
  if (given.type !== "object")
    throw new ExternalToolError('--describe printed "parameters" that are not of type "object".', "manifest")
  const checked = checkerOf(schema).pipe(z.record(z.string(), z.unknown()))
  // Zod asks a schema for this before it writes one itself.
  checked._zod.toJSONSchema = () => structuredClone(schema)
  return checked
}

function checkerOf(schema: Record<string, unknown>): z.ZodType {
  try {
    return z.fromJSONSchema(schema)
  } catch (error) {
    throw new ExternalToolError(
      `--describe printed "parameters" that Tackle cannot check: ${errorMessage(error)}. Say it in the description, and check it in the tool.`,
      "manifest",
    )
  }
}
