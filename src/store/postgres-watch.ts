import { createHash } from "node:crypto"
import type { Client, Notification } from "pg"
import { isRecord, parseJson } from "../util/json.ts"
import { createControlBell } from "./control-bell.ts"
import type { PostgresConnection } from "./postgres-connection.ts"
import { controlChangeOf } from "./postgres-requests.ts"
import type { ControlChange, Mail, Store } from "./store.ts"

/** First and maximum pause in milliseconds between attempts to reconnect. */
const firstPauseMs = 50
const maxPauseMs = 5_000

/** Interval in milliseconds at which the connection is checked, because a lost connection may go unnoticed. */
const checkMs = 5_000

/** A listener's callbacks. `onText` receives texts. `onConnected` is called when texts can arrive. */
interface Receiver {
  onText(text: string): void
  onConnected(): void
}

/**
 * Creates a watcher that reports commits by other processes. Uses LISTEN on one connection for all listeners. After
 * reconnecting, calls all listeners, because notifications may have been missed.
 */
export function createPostgresWatcher({
  createClient,
  query,
  channel,
  isOwnBackend,
}: PostgresConnection): Pick<Store, "watch" | "watchControl"> & {
  mail: Mail
  /** Calls the listeners of `watchControl`. */
  ring(change?: ControlChange): void
  end(): Promise<void>
} {
  const listeners = new Set<(sessionIDs?: ReadonlySet<string>) => void>()
  const bell = createControlBell()
  /** Receivers, keyed by channel. */
  const receivers = new Map<string, Set<Receiver>>()
  let client: Client | undefined
  let retry: NodeJS.Timeout | undefined
  let check: NodeJS.Timeout | undefined
  let pauseMs = firstPauseMs
  /** True while the connection listens to the channels of all receivers. */
  let isReady = false

  function callAll(sessionIDs?: ReadonlySet<string>): void {
    for (const listener of [...listeners]) listener(sessionIDs)
  }

  function onNotification({ processId, payload = "", channel: source }: Notification): void {
    if (source !== channel) {
      for (const { onText } of receivers.get(source) ?? []) onText(payload)
      return
    }
    if (isOwnBackend(processId)) return
    const parsed = parseJson(payload)
    if (!parsed.ok || !isRecord(parsed.value)) {
      callAll()
      bell.ring()
      return
    }
    const control = controlChangeOf(parsed.value)
    if (control) bell.ring(control)
    else callAll(new Set(Object.keys(parsed.value)))
  }

  function open(): void {
    if (client) return
    clearTimeout(retry)
    void connect()
  }

  async function connect(): Promise<void> {
    const opening = createClient()
    client = opening
    opening.on("notification", onNotification)
    opening.on("error", () => reconnect(opening))
    opening.on("end", () => reconnect(opening))
    try {
      await opening.connect()
      // Watching does not keep the process running.
      const { unref } = opening as Client & { unref(): void }
      unref.call(opening)
      const listening = new Set<string>()
      // A receiver can be added while this function waits for the server.
      for (let missing: string | undefined = channel; missing !== undefined; ) {
        await opening.query(`LISTEN "${missing}"`)
        listening.add(missing)
        missing = [...receivers.keys()].find((name) => !listening.has(name))
      }
      pauseMs = firstPauseMs
      check = setInterval(() => void assertAlive(opening), checkMs).unref()
      // Reports changes since the last notification, or since the listener was added.
      callAll()
      bell.ring()
      isReady = true
      for (const all of receivers.values()) for (const { onConnected } of all) onConnected()
    } catch {
      reconnect(opening)
    }
  }

  /** Replaces a connection whose server does not answer. */
  async function assertAlive(current: Client): Promise<void> {
    const timer = setTimeout(() => reconnect(current), checkMs).unref()
    await current.query("SELECT 1").catch(() => reconnect(current))
    clearTimeout(timer)
  }

  function reconnect(failed: Client): void {
    if (client !== failed) return
    close()
    if (listeners.size + bell.size + receivers.size === 0) return
    // A random delay prevents all processes from reconnecting at the same moment.
    retry = setTimeout(() => void connect(), pauseMs * (0.5 + Math.random())).unref()
    pauseMs = Math.min(pauseMs * 2, maxPauseMs)
  }

  function close(): Promise<void> {
    clearInterval(check)
    clearTimeout(retry)
    const closing = client
    client = undefined
    isReady = false
    return closing?.end().catch(() => {}) ?? Promise.resolve()
  }

  return {
    watch(listener) {
      // Each watch gets a new wrapper, so the same listener can be added twice.
      const entry = (sessionIDs?: ReadonlySet<string>) => listener(sessionIDs)
      listeners.add(entry)
      open()
      return () => {
        listeners.delete(entry)
      }
    },
    watchControl(listener) {
      open()
      return bell.add(listener)
    },
    mail: {
      async send(address, texts) {
        // Nothing is stored, so there is no need to wait for the disk.
        await query(
          `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, text) FROM unnest($2::text[]) text`,
          [mailChannel(channel, address), texts],
        )
      },
      listen(address, onText, onConnected) {
        const name = mailChannel(channel, address)
        const receiver = { onText, onConnected }
        const all = receivers.get(name) ?? new Set()
        receivers.set(name, all.add(receiver))
        const current = client
        if (current && isReady)
          void current.query(`LISTEN "${name}"`).then(onConnected, () => reconnect(current))
        else open()
        return () => {
          all.delete(receiver)
          if (all.size > 0 || !receivers.delete(name)) return
          if (client && isReady) client.query(`UNLISTEN "${name}"`).catch(() => {})
        }
      },
    },
    ring: bell.ring,
    end() {
      listeners.clear()
      bell.clear()
      receivers.clear()
      return close()
    },
  }
}

/** Returns the name of the channel for texts to an address. PostgreSQL limits names to 63 bytes. */
function mailChannel(channel: string, address: string): string {
  const name = `${channel}_${address}`
  if (Buffer.byteLength(name) <= 63) return name
  return `mail_${createHash("sha256").update(name).digest("hex").slice(0, 32)}`
}
