import { baseEnvironment } from "../run-subject.ts"
import {
  cpuMsOf,
  createHttpClient,
  memoryOf,
  type Service,
  type SessionListener,
  startProcess,
  stopProcess,
} from "../service.ts"

/**
 * Starts `opencode serve` in the project `home`, which contains its configuration. OpenCode has one event stream for
 * all sessions in a directory. The service reads it with one connection, so that OpenCode sends each event only once.
 */
export async function startOpenCodeService(
  program: string,
  { home, env }: { home: string; env: Record<string, string> },
): Promise<Service> {
  const { child, found: origin } = await startProcess(
    program,
    ["serve", "--hostname", "127.0.0.1", "--port", "0"],
    {
      cwd: home,
      env: { ...baseEnvironment({ home, directory: home }), ...env },
      find: (line) => /http:\/\/\S+/.exec(line)?.[0],
    },
  )
  const pid = child.pid ?? 0
  const client = createHttpClient(origin)
  const place = `directory=${encodeURIComponent(home)}`
  const listeners = new Map<string, Set<SessionListener>>()
  const leave = await client.follow(`/event?${place}`, ({ type, properties }) => {
    const { sessionID, delta } = properties as { sessionID?: string; delta?: string }
    for (const listener of listeners.get(sessionID ?? "") ?? []) {
      if (type === "message.part.delta") listener.onDelta(delta ?? "")
      if (type === "session.idle") listener.onEnd()
    }
  })

  function listen(session: string, listener: SessionListener): () => void {
    const known = listeners.get(session) ?? new Set()
    listeners.set(session, known.add(listener))
    return () => known.delete(listener)
  }

  /** For each running session, a promise that resolves when the run ends. */
  const ends = new Map<string, Promise<void>>()

  return {
    async createSession() {
      // OpenCode sends no request for a title if a session has one.
      return String((await client.call("POST", `/session?${place}`, { title: "Session" })).id)
    },
    async prompt(session, text) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const forget = listen(session, {
        onDelta() {},
        onEnd() {
          forget()
          resolve()
        },
      })
      ends.set(session, promise)
      const body = { parts: [{ type: "text", text }] }
      await client.call("POST", `/session/${session}/prompt_async?${place}`, body)
    },
    idle: async (session) => ends.get(session),
    follow: async (session, listener) => listen(session, listener),
    memory: () => memoryOf(pid),
    cpuMs: () => cpuMsOf(pid),
    async [Symbol.asyncDispose]() {
      leave()
      client.close()
      await stopProcess(child)
    },
  }
}
