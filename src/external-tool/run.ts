import { PermissionError } from "../permission/errors.ts"
import type { ToolContext } from "../tool/context.ts"
import type { ToolResult } from "../tool/tool.ts"
import { orAbort, within } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { plainRecord } from "../util/json.ts"
import type { RunningProcess } from "../util/process.ts"
import { shownExit } from "./describe.ts"
import { createErrorTail } from "./error-tail.ts"
import { ExternalToolError } from "./errors.ts"
import { createLineReader, defaultLineLimits } from "./line-reader.ts"
import type { Program } from "./program.ts"
import { encodeLine, type HostLine, readToolLine, type ToolLine } from "./protocol.ts"
import { startProgram } from "./start.ts"

/** How long a program may take to end by itself once it is told to stop, or has given its result. In milliseconds. */
const goodbyeMs = 1_000

/** How long to wait for the last of the output of a program that ended, where what it started holds it open. */
const lastOutputMs = 500

/** So many questions may be open at once. */
const maxQuestions = 32

type Lines = { [Type in ToolLine["type"]]: Extract<ToolLine, { type: Type }> }

/** How a call came out. `defect`: of the program, told with the end of its standard error. */
type Outcome =
  | { kind: "result"; line: Lines["result"] }
  | { kind: "error"; message: string }
  | { kind: "defect"; code: "protocol" | "ended"; message: string }
  | { kind: "thrown"; error: unknown }

/**
 * Starts the program for one call and speaks with it until its result. It is gone, with all that it started, when this
 * settles. Throws what the call was aborted with, the `PermissionError` that a program gave up at, and
 * {@link ExternalToolError} for its `error` line, a bad line, or an end without a result.
 */
export async function runProgram(
  program: Program,
  args: Record<string, unknown>,
  ctx: ToolContext,
  lineLimits = defaultLineLimits,
): Promise<ToolResult> {
  const id = newId("call")
  const tail = createErrorTail()
  const { promise: outcome, resolve: settle } = Promise.withResolvers<Outcome>()
  const asked = new Set<string>()
  let refusal: PermissionError | undefined

  function report(update: Parameters<ToolContext["metadata"]>[0]): void {
    ctx.metadata(update).catch((error: unknown) => settle({ kind: "thrown", error }))
  }

  function badLine(problem: string, number: number): false {
    settle({ kind: "defect", code: "protocol", message: describeBadLine(program.name, problem, number) })
    return false
  }

  /** False: no more lines are wanted. */
  function take(line: ToolLine, number: number): boolean {
    switch (line.type) {
      case "metadata":
        report(withoutAbsent({ title: line.title, metadata: line.metadata }))
        return true
      case "ask":
        if (asked.has(line.ask)) return badLine(`its ask "${line.ask}" still waits for its reply`, number)
        if (asked.size >= maxQuestions)
          return badLine(`more than ${maxQuestions} asks wait for a reply`, number)
        void answer(line)
        return true
      case "result":
        settle({ kind: "result", line })
        return false
      case "error":
        settle({ kind: "error", message: line.message })
        return false
    }
  }

  /** Never rejects. */
  async function answer({ ask, permission, patterns, ...rest }: Lines["ask"]): Promise<void> {
    const { always, paths, metadata } = rest
    asked.add(ask)
    try {
      await ctx.ask({ permission, patterns, ...withoutAbsent({ always, paths, metadata }) })
      send({ type: "reply", id, ask, allowed: true })
    } catch (error) {
      if (!(error instanceof PermissionError)) return settle({ kind: "thrown", error })
      refusal = error
      send({ type: "reply", id, ask, allowed: false, message: error.message })
    } finally {
      asked.delete(ask)
    }
  }

  const reader = createLineReader({
    ...lineLimits,
    onLine(text, number) {
      const read = readToolLine(text, id)
      return read.ok ? take(read.line, number) : badLine(read.problem, number)
    },
    onProblem: badLine,
  })

  const child = await startProgram(program, {
    args: [],
    cwd: ctx.directory,
    input: true,
    onOutput: (bytes) => void reader.push(bytes),
    onErrorOutput(bytes) {
      tail.push(bytes)
      report({ metadata: { stderr: tail.text() } })
    },
  })

  function send(line: HostLine): void {
    // A program that reads no more says by its end or its lines what came of it.
    child.input?.write(encodeLine(line)).catch(() => {})
  }

  let last: Outcome
  try {
    send({ type: "call", id, arguments: plainRecord(args), context: contextOf(ctx) })
    const ended = endWithoutResult(child, reader.end, program.name)
    last = await orAbort(
      Promise.race([outcome, ended.then((end) => Promise.race([outcome, end]))]),
      ctx.abort,
    )
    child.input?.end()
    await within(child.exited, goodbyeMs)
  } catch (error) {
    send({ type: "abort", id, reason: ctx.abort.reason instanceof Error ? ctx.abort.reason.message : "" })
    await within(child.exited, goodbyeMs)
    throw error
  } finally {
    await child.kill()
  }

  if (last.kind === "result") return resultOf(program.name, last.line, tail.text())
  if (last.kind === "thrown") throw last.error
  // What it makes of a refusal is less clear than the refusal itself.
  if (refusal) throw refusal
  if (last.kind === "error") throw new ExternalToolError(last.message, "failed")
  throw new ExternalToolError(last.message + tail.note(), last.code)
}

/** Resolves once the program ended and what it wrote was read. */
async function endWithoutResult(child: RunningProcess, readRest: () => void, name: string): Promise<Outcome> {
  const exit = await child.exited
  await within(child.closed, lastOutputMs)
  readRest()
  const message = `The ${name} tool ended with ${shownExit(exit)} and without a result. This is a bug in the tool, not in the call.`
  return { kind: "defect", code: "ended", message }
}

function describeBadLine(name: string, problem: string, number: number): string {
  return (
    `The ${name} tool wrote what is not understood to its standard output, line ${number}: ${problem}. ` +
    "Only lines of the protocol belong there, everything else on standard error. This is a bug in the tool, not in the call."
  )
}

function contextOf({ sessionID, messageID, callID, agent, directory, worktree }: ToolContext) {
  return {
    sessionID,
    messageID,
    agent,
    directory,
    worktree,
    ...(callID === undefined ? {} : { callID }),
  }
}

function resultOf(
  name: string,
  { title = name, output, metadata, attachments }: Lines["result"],
  stderr: string,
) {
  const result: ToolResult = {
    title,
    output,
    metadata: { ...(stderr === "" ? {} : { stderr }), ...metadata },
  }
  if (attachments) result.attachments = attachments
  return result
}

type Present<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutAbsent<T extends Record<string, unknown>>(fields: T): Present<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<T>
}
