import { readAuthHook } from "./auth.ts"
import type { Hooks } from "./hooks.ts"

/** What OpenCode calls differently. */
const otherNames: Readonly<Record<string, string>> = {
  "experimental.session.compacting": "session.compacting",
  "experimental.chat.messages.transform": "chat.messages.transform",
  "experimental.chat.system.transform": "chat.system.transform",
  "experimental.text.complete": "text.complete",
}

const known: ReadonlySet<string> = new Set([
  "config",
  "event",
  "tool",
  "auth",
  "dispose",
  "tool.execute.before",
  "tool.execute.after",
  "tool.definition",
  "permission.ask",
  "chat.message",
  "chat.params",
  "chat.headers",
  "chat.messages.transform",
  "chat.system.transform",
  "text.complete",
  "shell.env",
  "session.compacting",
] satisfies (keyof Hooks)[])

/**
 * The hooks of what a plugin returned, under our names, and the names of those that nothing here calls. Throws
 * `TypeError` for a hook that is no function.
 */
export function readHooks(returned: Record<string, unknown>): { hooks: Hooks; unused: string[] } {
  const hooks: Record<string, unknown> = {}
  const unused: string[] = []
  for (const [written, value] of Object.entries(returned)) {
    if (value === undefined || value === null) continue
    const name = otherNames[written] ?? written
    if (!known.has(name)) {
      unused.push(written)
      continue
    }
    if (name === "auth") {
      hooks[name] = readAuthHook(value)
      continue
    }
    const fits = name === "tool" ? typeof value === "object" : typeof value === "function"
    if (!fits)
      throw new TypeError(
        `its "${written}" is ${typeof value}, not ${name === "tool" ? "a map of tools" : "a function"}`,
      )
    hooks[name] = typeof value === "function" ? value.bind(returned) : value
  }
  return { hooks, unused }
}
