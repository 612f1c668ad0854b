import type { RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"

/** The kind of a turn. */
export type Kind =
  | "read"
  | "command"
  | "abort-call"
  | "write"
  | "retry"
  | "job"
  | "task"
  | "abort-answer"
  | "question"
  | "talk"

const kinds: readonly Kind[] = [
  "read",
  "command",
  "abort-call",
  "write",
  "retry",
  "job",
  "task",
  "abort-answer",
  "question",
  "talk",
]

/** The open resources of a process. */
export interface Held {
  /** Names of the resources that keep the event loop of Node alive. */
  resources: string[]
  descriptors: number
  children: number
}

export interface SoakReport {
  /** Bytes in use after a collection, every fifth turn. */
  heap: number[]
  /** Number of turns, by kind and status. */
  statuses: Record<string, number>
  compactions: number
  retries: number
  before: Held
  /** The open resources after every fifth turn. */
  during: Held[]
  after: Held
}

export function kindOf(turn: number): Kind {
  return kinds[turn % kinds.length] ?? "talk"
}

/** Maximum number of characters that the model accepts: about ten turns. */
const maxCharacters = 60_000

/** Returns a script that answers by the turn in the last prompt, and by whether its call has a result. */
export function soakScript(): (request: RecordedRequest) => Reply {
  let failed = ""
  return ({ body }) => {
    const prompted = JSON.stringify(body.messages.findLast(({ role }) => role === "user"))
    if (JSON.stringify(body.messages[0]).includes("Summarize the work"))
      return { text: "A summary of what was before." }
    if (prompted.includes("work of the subagent")) return { text: "The subagent is done." }
    const text = JSON.stringify(body.messages)
    if (text.length > maxCharacters) return { status: 400, text: "maximum context length is 100 tokens" }
    const [, turn = "0", kind = "talk"] = [...text.matchAll(/turn (\d+): ([a-z-]+)/g)].at(-1) ?? []
    if (kind === "retry" && failed !== turn) {
      failed = turn
      return { status: 503, text: "overloaded", headers: { "retry-after-ms": "1" } }
    }
    if (body.messages.at(-1)?.role === "tool")
      return { text: `Turn ${turn} is done. ${"Words. ".repeat(20)}` }
    return first(kind, turn)
  }
}

function first(kind: string, turn: string): Reply {
  const call = (name: string, args: Record<string, unknown>): Reply => ({
    calls: [{ name, arguments: args }],
    pieceSize: 16,
  })
  const bash = (command: string) => call("bash", { command, description: "Run it" })
  switch (kind) {
    case "read":
      return call("read", { filePath: "long.txt" })
    case "command":
      return bash(`seq 1 2000; echo ${turn}`)
    case "abort-call":
      return bash("sleep 60")
    case "write":
      return call("write", { filePath: `out-${Number(turn) % 50}.txt`, content: `${turn}\n`.repeat(100) })
    case "job":
      return bash("sleep 0.2 & echo started")
    case "task":
      return call("task", { description: "Do it", prompt: "work of the subagent", subagent_type: "general" })
    case "abort-answer":
      return { text: "Words that never end. ".repeat(10), pieceSize: 8, fault: "hang-mid" }
    case "question":
      return bash("echo asked")
    default:
      return { text: "Words. ".repeat(50), pieceSize: 8 }
  }
}
