import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { StoredAuth } from "./auth.ts"
import { copyPlain } from "./copy-plain.ts"

/** The data and functions that a plugin's client uses. */
export interface ClientHost {
  directory: string
  worktree: string
  /** Logs a message from a plugin. */
  log(entry: { plugin: string; level: string; message: string; extra?: unknown }): void
  session(id: string): Promise<Session | undefined>
  sessions(): Promise<Session[]>
  messages(sessionID: string): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  /** Returns the config in OpenCode's format. */
  config(): Record<string, unknown>
  /** Stores a provider's credentials. */
  saveAuth(providerID: string, auth: StoredAuth): Promise<void>
}

/** OpenCode's client with the methods that Tackle supports. Other methods throw when called. */
export type PluginClient = Readonly<Record<string, unknown>>

type Method = (input?: unknown) => Promise<unknown>

/** Creates a plugin's client. Its methods return `{ data }`, as in OpenCode. */
export function createClient(plugin: string, host: ClientHost): PluginClient {
  const note = (level: string, message: string, extra?: unknown) =>
    host.log({ plugin, level, message, extra })
  const methods: Readonly<Record<string, Method>> = {
    "app.log": async (input) => {
      const { level, message, extra } = fieldsOf(input)
      note(typeof level === "string" ? level : "info", String(message), extra)
      return true
    },
    "tui.showToast": async (input) => {
      const { title, message, variant } = fieldsOf(input)
      note(variant === "error" ? "error" : "info", [title, message].filter(Boolean).join(": "))
      return true
    },
    "session.get": async (input) => {
      const id = sessionOf(input)
      const found = await host.session(id)
      if (found) return found
      throw new UsageError(`Unknown session "${id}".`)
    },
    "session.list": () => host.sessions(),
    "session.messages": async (input) => {
      const messages = await host.messages(sessionOf(input))
      return messages.map(({ message, parts }) => ({ info: message, parts }))
    },
    "session.todo": (input) => host.todos(sessionOf(input)),
    // Plugins use this to store renewed tokens.
    "auth.set": async (input) => {
      const auth = StoredAuth.safeParse(isRecord(input) ? input.body : undefined)
      if (!auth.success)
        throw new UsageError("auth.set requires { path: { id }, body } with a key or tokens.")
      await host.saveAuth(idIn(input, "auth.set requires the provider's id as { path: { id } }."), auth.data)
      return true
    },
    "config.get": async () => host.config(),
    "path.get": async () => ({ directory: host.directory, worktree: host.worktree }),
    "project.current": async () => ({ id: host.worktree, worktree: host.worktree }),
  }
  return member([], methods) as unknown as PluginClient
}

/** Returns the member at a path such as `client.a.b`. An unknown member throws only when it is called. */
function member(path: readonly string[], methods: Readonly<Record<string, Method>>): object {
  const name = path.join(".")
  const call = async (input?: unknown) => {
    const method = methods[name]
    if (!method) {
      const offered = Object.keys(methods).join(", ")
      throw new UsageError(`Tackle's plugin client does not support ${name}(). Supported: ${offered}.`)
    }
    // Copy the data, because plugins may change it.
    return { data: copyPlain(await method(input)) }
  }
  // Some plugins check that the client and its groups are objects. Only the members of groups are functions.
  return new Proxy(path.length < 2 ? {} : call, {
    get(_, key) {
      // A `then` member would make the client a promise.
      return typeof key === "string" && key !== "then" ? member([...path, key], methods) : undefined
    },
  })
}

/** Returns the fields of an input. Old versions of OpenCode's client wrap them in `body`. */
function fieldsOf(input: unknown): Record<string, unknown> {
  if (!isRecord(input)) return {}
  return isRecord(input.body) ? input.body : input
}

function sessionOf(input: unknown): string {
  if (isRecord(input) && typeof input.sessionID === "string") return input.sessionID
  return idIn(input, "The call requires the session's id as { path: { id } } or { sessionID }.")
}

function idIn(input: unknown, missing: string): string {
  const path = isRecord(input) ? input.path : undefined
  const id = isRecord(path) ? (path.id ?? path.sessionID) : undefined
  if (typeof id === "string") return id
  throw new UsageError(missing)
}
