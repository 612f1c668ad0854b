import { PermissionError } from "../permission/errors.ts"
import type { ToolContext } from "../tool/context.ts"
import type { ToolResult } from "../tool/tool.ts"
import { orAbort, within } from "../util/abort.ts"
import { newId } from "../util/id.ts"
import { plainRecord } from "../util/json.ts"
import type { RunningProcess } from "../util/process.ts"
import { createLineReader, defaultLineLimits } from "./line-reader.ts"
import { createErrorTail, describeExit, type Program, startProgram } from "./program.ts"
import { ExternalToolError, encodeLine, type HostLine, readToolLine, type ToolLine } from "./protocol.ts"

/** Time in milliseconds within which a program must exit after its result or an abort. */
const shutdownMs = 1_000

/**
 * Time in milliseconds to wait for the last output of a program that exited, because a child process can keep the
 * output open.
 */
const lastOutputMs = 500

/** Maximum number of permission requests from one call that can wait for a reply. */
const maxQuestions = 32

type Lines = { [Type in ToolLine["type"]]: Extract<ToolLine, { type: Type }> }

/** The outcome of a call. `defect` is a bug in the program and is reported with the end of its stderr. */
type Outcome =
  | { kind: "result"; line: Lines["result"] }
  | { kind: "error"; message: string }
  | { kind: "defect"; code: "protocol" | "ended"; message: string }
  | { kind: "thrown"; error: unknown }

/**
 * Makes one call to the program and returns its result. All of the program's processes have ended when the promise
 * settles. Throws the errors that {@link startProgram} throws, the error that `abortedError` returns if the call is
 * aborted, and a `PermissionError` if a permission was refused and the program then returns no result. Throws {@link
 * ExternalToolError} if the program writes an `error` line or an invalid line, or exits without a result.
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

  /** Processes a line from the program. Returns false to stop reading. */
  function take(line: ToolLine, number: number): boolean {
    switch (line.type) {
      case "metadata":
        report({ title: line.title, metadata: line.metadata })
        return true
      case "ask":
        if (asked.has(line.ask))
          return badLine(`its request "${line.ask}" is already waiting for a reply`, number)
        if (asked.size >= maxQuestions)
          return badLine(`more than ${maxQuestions} requests are waiting for a reply`, number)
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

  /** Replies to a permission request from the program. Never rejects. */
  async function answer({ ask, permission, patterns, ...rest }: Lines["ask"]): Promise<void> {
    const { always, paths, metadata } = rest
    asked.add(ask)
    try {
      await ctx.ask({ permission, patterns, always, paths, metadata })
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
    // A failed write is ignored. If the program has stopped reading, its output or its exit code determines the
    // outcome.
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
    await within(child.exited, shutdownMs)
  } catch (error) {
    send({ type: "abort", id, reason: ctx.abort.reason instanceof Error ? ctx.abort.reason.message : "" })
    await within(child.exited, shutdownMs)
    throw error
  } finally {
    await child.kill()
  }

  if (last.kind === "result") return resultOf(program.name, last.line, tail.text())
  if (last.kind === "thrown") throw last.error
  // The message of the refusal is clearer than the program's message about the refusal.
  if (refusal) throw refusal
  if (last.kind === "error") throw new ExternalToolError(last.message, "failed")
  throw new ExternalToolError(last.message + tail.note(), last.code)
}

/**
 * Returns the outcome for a program that exits without a result. Resolves after the program has exited and its output
 * has been read.
 */
async function endWithoutResult(child: RunningProcess, readRest: () => void, name: string): Promise<Outcome> {
  const exit = await child.exited
  await within(child.closed, lastOutputMs)
  readRest()
  const message = `The ${name} tool ended with ${describeExit(exit)} and returned no result. This is a bug in the tool, not in the call.`
  return { kind: "defect", code: "ended", message }
}

function describeBadLine(name: string, problem: string, number: number): string {
  return (
    `The ${name} tool wrote invalid output to its standard output, line ${number}: ${problem}. ` +
    "Standard output is only for protocol lines. Print everything else to standard error. This is a bug in the tool, not in the call."
  )
}

function contextOf({ sessionID, messageID, callID, agent, directory, worktree }: ToolContext) {
  return {
    sessionID,
    messageID,
    agent,
    directory,
    worktree,
    callID,
  }
}

function resultOf(
  name: string,
  { title = name, output, metadata, attachments }: Lines["result"],
  stderr: string,
) {
  return { title, output, metadata: { ...(stderr !== "" && { stderr }), ...metadata }, attachments }
}
