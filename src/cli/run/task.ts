import { readFile } from "node:fs/promises"
import { text as readAll } from "node:stream/consumers"
import type { RunLine } from "../../model/recording/format.ts"
import type { PromptFile } from "../../schema/input.ts"
import type { PromptOptions } from "../../session/handle.ts"
import { errorMessage, fileReason, UsageError } from "../../util/errors.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import type { RuleFlags } from "../workspace/rules.ts"
import type { Workspace } from "../workspace/workspace.ts"
import { chooseModel } from "./choose-model.ts"

/** Flags that define the task of a run. */
export interface TaskFlags extends RuleFlags {
  model?: string
  agent?: string
  maxSteps?: number
  maxTokens?: number
  maxCost?: number
  outputSchema?: string
}

/** The task of a run. */
export interface RunTask extends Required<Omit<RuleFlags, "sandboxed">>, Pick<RuleFlags, "sandboxed"> {
  prompt: string
  /** Model as `provider/model`, for agents and sessions without their own model. */
  model: string
  /**
   * Whether the user specified the model for this run. If so, it takes precedence over the agent's or session's model.
   */
  named: boolean
  agent?: string
  limits: Pick<PromptOptions, "maxSteps" | "maxTokens" | "maxCost">
  outputSchema?: Record<string, unknown>
  /** Files that were attached when the run was recorded. */
  files?: readonly PromptFile[]
  /** Prompt that an MCP server filled in when the run was recorded. */
  command?: NonNullable<RunLine["command"]>
}

/** Returns the task from a command line. Throws `UsageError` if the command line is invalid. */
export async function readTask(
  message: readonly string[],
  flags: TaskFlags,
  workspace: Workspace,
): Promise<RunTask> {
  const { agent, outputSchema, allow = [], deny = [], sandboxed, maxSteps, maxTokens, maxCost } = flags
  return {
    prompt: await readPrompt(message, 'tackle run "list the files"'),
    outputSchema: outputSchema === undefined ? undefined : await readSchema(outputSchema),
    model: flags.model ?? (await defaultModel(workspace)),
    named: flags.model !== undefined,
    allow,
    deny,
    sandboxed,
    limits: { maxSteps, maxTokens, maxCost },
    agent,
  }
}

/**
 * Returns the model for agents and sessions without their own model. If the config does not specify a model, may ask
 * the user.
 */
export async function defaultModel(workspace: Workspace): Promise<string> {
  return workspace.config.config.model ?? chooseModel(workspace)
}

/**
 * Returns the words as one text, or the text from stdin. Throws `UsageError` if the text is empty. If stdin is a
 * terminal, the error message contains `example`.
 */
export async function readPrompt(message: readonly string[], example: string): Promise<string> {
  const given = message.join(" ").trim()
  const fromStdin = given === "-" || given === ""
  if (given === "" && process.stdin.isTTY) {
    throw new UsageError(`The prompt is missing. Example: ${example}.`)
  }
  const prompt = fromStdin ? (await readAll(process.stdin)).trim() : given
  if (prompt === "") throw new UsageError("The prompt is empty, because stdin contained no text.")
  return prompt
}

async function readSchema(file: string): Promise<Record<string, unknown>> {
  let text: string
  try {
    text = await readFile(file, "utf8")
  } catch (error) {
    throw new UsageError(`Cannot read the output schema ${file}: ${fileReason(error)}.`, error)
  }
  const parsed = parseJson(text)
  if (parsed.ok && isRecord(parsed.value)) return usable(parsed.value, file)
  const problem = parsed.ok ? "expected an object" : parsed.error
  throw new UsageError(`Invalid output schema ${file}: ${problem}.`)
}

/** Returns the schema. Throws `UsageError` if it cannot be used, before a session is created. */
async function usable(schema: Record<string, unknown>, file: string): Promise<Record<string, unknown>> {
  const { readAnswerSchema } = await import("../../model/answer-schema.ts")
  try {
    readAnswerSchema(schema)
    return schema
  } catch (error) {
    throw new UsageError(`Invalid output schema ${file}: ${errorMessage(error)}`, error)
  }
}
