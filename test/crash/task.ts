import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { ChatMessage, RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply, ScriptedCall } from "../../src/testing/reply.ts"

/** A false statement that the model received. It fails the crash test. */
export type Untruth = (what: string) => void

/** A call that must have its effect exactly once, and a check of whether the project shows the effect. */
interface Action extends ScriptedCall {
  name: string
  arguments: Record<string, unknown>
  done(directory: string): boolean
}

/**
 * Returns a command that appends a line, so that a repetition is visible. `before` and `after` are seconds in which the
 * command can be interrupted.
 */
function effect(line: string, { before = 0, after = 0, more = "" } = {}): Action {
  const wait = (seconds: number) => (seconds > 0 ? [`sleep ${seconds}`] : [])
  const command = [...wait(before), `echo ${line} >> effects.log`, ...wait(after)].join("; ") + more
  return {
    name: "bash",
    arguments: { command, description: line },
    done: (directory) => effectsIn(directory).includes(line),
  }
}

function write(name: string): Action {
  return {
    name: "write",
    arguments: { filePath: name, content: `${name}\n` },
    done: (directory) => contentOf(directory, name) !== undefined,
  }
}

const edit: Action = {
  name: "edit",
  arguments: { filePath: "one.txt", oldString: "one.txt", newString: "one.txt, edited" },
  done: (directory) => contentOf(directory, "one.txt") === "one.txt, edited\n",
}

/** Reads a file. If its write was not recorded as done, the file must be read before it is edited. */
function read(name: string): Action {
  return { name: "read", arguments: { filePath: name }, done: () => false }
}

/** The engine stores the to-do list, so writing the list twice has the same effect as writing it once. */
const todo: Action = {
  name: "todowrite",
  arguments: { todos: [{ content: "finish", status: "in_progress", priority: "high" }] },
  done: () => false,
}

const childPrompt = "Do the part of the subagent."
/** Patches one file, because a patch of several files can be half done. `done` checks the content of the file. */
function patch(section: string, done: (content: string) => boolean): Action {
  return {
    name: "apply_patch",
    arguments: { patchText: `*** Begin Patch\n${section}\n*** End Patch` },
    done: (directory) => done(contentOf(directory, "child.txt") ?? ""),
  }
}

/** Steps of the subagent, whose model changes files with patches. */
const childSteps: Action[][] = [
  [effect("child", { after: 0.05 })],
  [patch("*** Add File: child.txt\n+child.txt", (content) => content !== "")],
  [read("child.txt")],
  [
    patch("*** Update File: child.txt\n@@\n-child.txt\n+child.txt, patched", (content) =>
      content.includes("patched"),
    ),
  ],
]

const task: Action = {
  name: "task",
  arguments: { description: "a part", prompt: childPrompt, subagent_type: "general" },
  done: (directory) => childSteps.flat().every((action) => isTraceless(action) || action.done(directory)),
}

/** Actions of one step, in one `batch` or in separate calls. */
interface Step {
  actions: Action[]
  batch?: true
}

const steps: Step[] = [
  { actions: [write("one.txt"), effect("one")] },
  { actions: [read("one.txt")] },
  { actions: [edit] },
  { actions: [effect("slow", { before: 0.15, after: 0.05 })] },
  { actions: [effect("batched"), write("batched.txt")], batch: true },
  { actions: [todo] },
  { actions: [task] },
  // A job that continues after its call.
  { actions: [effect("job", { more: "; sleep 300 &" })] },
  { actions: [effect("last")] },
]

/** The project after the task, with each effect once. */
export const finished = {
  effects: ["batched", "child", "job", "last", "one", "slow"],
  files: {
    "one.txt": "one.txt, edited\n",
    "batched.txt": "batched.txt\n",
    "child.txt": "child.txt, patched\n",
  } as Record<string, string>,
}

/** The last answer of the model. */
export const lastWords = "All is done."

export const prompt = "Do the task."

/**
 * Answers like a careful model: repeats a call that never started, checks before it repeats a call that may have had an
 * effect, and repeats no other call. The answer depends only on the history, not on the process that asks.
 */
export function replyTo({ body }: RecordedRequest, directory: string, untrue: Untruth): Reply {
  const past = pastCalls(body.messages)
  const isChild = body.messages.some(
    ({ role, content }) => role === "user" && textOf(content) === childPrompt,
  )
  const plan: Step[] = isChild ? childSteps.map((actions) => ({ actions })) : steps
  for (const { actions, batch } of plan) {
    // A new subagent does not know what an earlier one did.
    const left = actions.filter(
      (action) => !(isChild && action.done(directory)) && isLeft(action, past, directory, untrue),
    )
    if (left.length === 0) continue
    if (!batch) return { calls: left.map(({ name, arguments: input }) => ({ name, arguments: input })) }
    const calls = left.map(({ name, arguments: parameters }) => ({ tool: name, parameters }))
    return { calls: [{ name: "batch", arguments: { calls } }] }
  }
  return { text: lastWords }
}

function isTraceless(action: Action): boolean {
  return action.name === "read" || action === todo
}

interface PastCall {
  name: string
  input: string
  /** The result. A call in a `batch` has the result of the batch. */
  result: string
}

function isLeft(action: Action, past: readonly PastCall[], directory: string, untrue: Untruth): boolean {
  const input = JSON.stringify(action.arguments)
  const result = past.findLast((call) => call.name === action.name && call.input === input)?.result
  if (result === undefined) return true
  const what = `${action.name} ${action.arguments.description ?? action.arguments.filePath ?? ""}`
  const there = action.done(directory)
  if (/^Error: .*(never started|had no effect|not run)/s.test(result)) {
    if (there) untrue(`${what} was reported as not started, but has taken effect`)
    return true
  }
  if (/^Error: .*(may have taken effect|the disk is full)/s.test(result)) return !there
  if (result.startsWith("Error: ")) untrue(`${what} failed with: ${result}`)
  else if (!there && !isTraceless(action)) untrue(`${what} was reported as done, but is not: ${result}`)
  return false
}

function pastCalls(messages: readonly ChatMessage[]): PastCall[] {
  const results = new Map(
    messages.flatMap(({ role, tool_call_id: id, content }) =>
      role === "tool" && id !== undefined ? [[id, textOf(content)] as const] : [],
    ),
  )
  return messages.flatMap(({ tool_calls: calls = [] }) =>
    calls.flatMap(({ id, function: { name, arguments: text } }) => {
      const input = JSON.parse(text) as Record<string, unknown>
      const result = results.get(id) ?? "Error: no result"
      if (name !== "batch") return [{ name, input: JSON.stringify(input), result }]
      // The arguments of a call that never started may not have been complete.
      const inner = (input.calls ?? []) as { tool: string; parameters: unknown }[]
      return inner.map(({ tool, parameters }) => ({ name: tool, input: JSON.stringify(parameters), result }))
    }),
  )
}

function textOf(content: ChatMessage["content"]): string {
  if (typeof content === "string") return content
  return (content ?? []).map(({ text = "" }) => text).join("")
}

/** Returns the lines that the commands of the task wrote, in order. */
export function effectsIn(directory: string): string[] {
  return (contentOf(directory, "effects.log") ?? "").split("\n").filter((line) => line !== "")
}

/** Returns the content of a file, or undefined if the file does not exist. */
export function contentOf(directory: string, name: string): string | undefined {
  try {
    return readFileSync(join(directory, name), "utf8")
  } catch {
    return undefined
  }
}

/** Returns whether the project shows the effect of a recorded call, or undefined if the call has no visible effect. */
export function tookEffect(
  tool: string,
  input: Record<string, unknown>,
  directory: string,
): boolean | undefined {
  const text = JSON.stringify(input)
  const all = [...steps.flatMap(({ actions }) => actions), ...childSteps.flat()]
  const action = all.find(({ name, arguments: args }) => name === tool && JSON.stringify(args) === text)
  return action === undefined || isTraceless(action) ? undefined : action.done(directory)
}
