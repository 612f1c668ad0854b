import type * as z from "zod"
import { authored, type Definition, type Info, type InitContext } from "./definition.ts"

export type * from "./definition.ts"

/**
 * Creates a tool from a definition, or from a function that returns a definition for an agent. Throws `TypeError` if
 * providers would reject the id (allowed: 1 to 64 letters, digits, `_` or `-`).
 */
export function define<P extends z.ZodType>(
  id: string,
  init: Definition<P> | ((ctx?: InitContext) => Promise<Definition<P>> | Definition<P>),
): Info<P> {
  if (!isToolId(id)) {
    throw new TypeError(`Invalid tool id "${id}": use 1 to 64 letters, digits, "_" or "-".`)
  }
  return {
    id,
    async init(ctx) {
      const definition = typeof init === "function" ? await init(ctx) : init
      return isComplete(definition)
        ? { ...definition }
        : { ...definition, execute: completeExecute(id, definition) }
    },
  }
}

/** Returns true for an id that providers accept. */
export function isToolId(id: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(id)
}

/**
 * Returns true for a value with the `id` and `init` of a tool, such as the result of {@link define} in another copy of
 * this module.
 */
export function isTool(value: unknown): value is Info {
  if (typeof value !== "object" || value === null) return false
  return "id" in value && typeof value.id === "string" && "init" in value && typeof value.init === "function"
}

/**
 * Returns true if the definition must be used unchanged: it has no `execute` and is therefore invalid, or it comes from
 * a tool that `define` created.
 */
function isComplete(definition: { execute?: unknown } | undefined): boolean {
  return typeof definition?.execute !== "function" || authored in definition.execute
}

function completeExecute<P extends z.ZodType>(
  id: string,
  definition: Definition<P>,
): Definition<P>["execute"] {
  const execute: Definition<P>["execute"] = async (args, ctx) => {
    const { runTool } = await import("./run.ts")
    return runTool({ id, definition }, args, ctx)
  }
  return Object.assign(execute, { [authored]: definition.execute.bind(definition) })
}
