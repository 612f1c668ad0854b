import type { MessageWithParts } from "../schema/message.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import { UsageError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { StoredAuth } from "./auth.ts"
import { copyPlain } from "./copy-plain.ts"

/** What the client reads from. */
export interface ClientHost {
  directory: string
  worktree: string
  /** A note of a plugin, for the log. */
  log(entry: { plugin: string; level: string; message: string; extra?: unknown }): void
  session(id: string): Promise<Session | undefined>
  sessions(): Promise<Session[]>
  messages(sessionID: string): Promise<MessageWithParts[]>
  todos(sessionID: string): Promise<Todo[]>
  /** The config as plugins know it. */
  config(): Record<string, unknown>
  /** Keeps what signing in to a provider gave. */
  saveAuth(providerID: string, auth: StoredAuth): Promise<void>
}

/** OpenCode's client, as far as there is something behind it. Every other member throws when it is called. */
export type PluginClient = Readonly<Record<string, unknown>>

type Method = (input?: unknown) => Promise<unknown>

/** The client of the plugin of that name. Answers come as OpenCode's do: `{ data }`. */
export function createClient(plugin: string, host: ClientHost): PluginClient {
  const note = (level: string, message: string, extra?: unknown) =>
    host.log({ plugin, level, message, ...(extra === undefined ? {} : { extra }) })
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
      throw new UsageError(`There is no session "${id}".`)
    },
    "session.list": () => host.sessions(),
    "session.messages": async (input) => {
      const messages = await host.messages(sessionOf(input))
      return messages.map(({ message, parts }) => ({ info: message, parts }))
    },
    "session.todo": (input) => host.todos(sessionOf(input)),
    // Tokens that a plugin renewed.
    "auth.set": async (input) => {
      const auth = StoredAuth.safeParse(isRecord(input) ? input.body : undefined)
      if (!auth.success) throw new UsageError("auth.set takes { path: { id }, body } with a key or tokens.")
      await host.saveAuth(idIn(input, "No provider is named: { path: { id } }."), auth.data)
      return true
    },
    "config.get": async () => host.config(),
    "path.get": async () => ({ directory: host.directory, worktree: host.worktree }),
    "project.current": async () => ({ id: host.worktree, worktree: host.worktree }),
  }
  return member([], methods) as unknown as PluginClient
}

/** `client.a.b(…)` by the names on the way. What is reached but never called does no harm. */
function member(path: readonly string[], methods: Readonly<Record<string, Method>>): object {
  const name = path.join(".")
  const call = async (input?: unknown) => {
    const method = methods[name]
    if (!method) {
      const offered = Object.keys(methods).join(", ")
      throw new UsageError(`Tackle's client has no ${name}() for plugins. There are: ${offered}.`)
    }
    // A copy: what a plugin does to it is its own affair.
    return { data: copyPlain(await method(input)) }
  }
  // The client and its parts are objects, which some plugins look at; only what lies in a part is called.
  return new Proxy(path.length < 2 ? {} : call, {
    get(_, key) {
      // `then` would make a promise of it for whoever awaits it.
      return typeof key === "string" && key !== "then" ? member([...path, key], methods) : undefined
    },
  })
}

/** Old clients wrap what they send into `body`. */
function fieldsOf(input: unknown): Record<string, unknown> {
  if (!isRecord(input)) return {}
  return isRecord(input.body) ? input.body : input
}

function sessionOf(input: unknown): string {
  if (isRecord(input) && typeof input.sessionID === "string") return input.sessionID
  return idIn(input, "No session is named: { path: { id } } or { sessionID }.")
}

function idIn(input: unknown, otherwise: string): string {
  const path = isRecord(input) ? input.path : undefined
  const id = isRecord(path) ? (path.id ?? path.sessionID) : undefined
  if (typeof id === "string") return id
  throw new UsageError(otherwise)
}
