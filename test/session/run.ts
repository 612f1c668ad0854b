import * as z from "zod"
import type { EventOf, TackleEvent } from "../../src/event/events.ts"
import type { ToolPart } from "../../src/schema/part.ts"
import type { PromptOptions, SessionHandle } from "../../src/session/handle.ts"
import type { ToolContext } from "../../src/tool/context.ts"
import { define, type Info } from "../../src/tool/tool.ts"
import type { Engine } from "./engine.ts"

/** The outcome of one prompt. */
export interface Run {
  session: SessionHandle
  events: TackleEvent[]
  end: EventOf<"run.completed">
}

/** Prompts a new session, or the given one, and reads its events to the end. */
export async function run(
  engine: Pick<Engine, "tackle">,
  options: PromptOptions & { text?: string; session?: SessionHandle } = {},
): Promise<Run> {
  const { text = "go", session = await engine.tackle.sessions.create(), ...rest } = options
  const events: TackleEvent[] = []
  const started = session.prompt(text, rest)
  for await (const event of started) events.push(event)
  return { session, events, end: await started.completed }
}

/** Returns the stored tool parts of a session. */
export async function toolParts(session: SessionHandle): Promise<ToolPart[]> {
  return (await session.messages()).flatMap(({ parts }) => parts).filter((part) => part.type === "tool")
}

/** Returns what the model reads of each call, in order. */
export async function resultsOf(session: SessionHandle): Promise<string[]> {
  return (await toolParts(session)).map(({ state }) => {
    if (state.status === "completed") return state.output
    return state.status === "error" ? `Error: ${state.error}` : state.status
  })
}

/** A library tool that accepts any arguments. */
export function tool(
  id: string,
  execute: (args: Record<string, unknown>, ctx: ToolContext) => unknown,
  more: Partial<Awaited<ReturnType<Info["init"]>>> = {},
): Info {
  return define(id, {
    description: id,
    parameters: z.looseObject({}),
    execute: execute as (args: unknown) => Promise<{ title: string; output: string }>,
    ...more,
  })
}
