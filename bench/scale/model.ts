import { type ChatMessage, type ModelServer, startModelServer } from "../../src/testing/model-server.ts"

/** A model that reads a file, runs a command that appends to a file, and answers. It thinks 20 ms before each step. */
export interface ScaleModel extends ModelServer {
  /** Time of the first request for each prompt, in ms of `performance.now()`, keyed by the prompt's text. */
  arrivals: Map<string, number>
  /** Times of the requests that continue a run, keyed by the session's name in its prompts. */
  continued: Map<string, number[]>
  /** Time of the first delta in the latest answer, in ms of `performance.now()`, keyed by the session's name. */
  answers: Map<string, number>
}

const thinkMs = 20

/**
 * Number of deltas in an answer, the time in milliseconds between two deltas, and the number of characters in each
 * delta.
 */
export const deltas = { count: 10, everyMs: 20, size: 5 }

/** Starts the model. A prompt has the form `<session> <turn>`. The command appends the turn to `effects/<session>`. */
export async function startScaleModel(): Promise<ScaleModel> {
  const arrivals = new Map<string, number>()
  const continued = new Map<string, number[]>()
  const answers = new Map<string, number>()
  const model = await startModelServer({
    script(request) {
      const { time } = request
      const { messages } = request.body
      const index = messages.findLastIndex((message) => promptOf(message) !== undefined)
      const prompt = promptOf(messages[index]) ?? ""
      const [session = "", turn = ""] = prompt.split(" ")
      if (!arrivals.has(prompt)) arrivals.set(prompt, time)
      if (messages.at(-1)?.role === "user" && index < messages.length - 1)
        continued.set(session, [...(continued.get(session) ?? []), time])
      // A call that had no effect is repeated.
      const results = messages
        .slice(index + 1)
        .filter(
          ({ role, content }) =>
            role === "tool" && !/had no effect|never started|not run/.test(textOf(content)),
        )
      const reply = { delayMs: thinkMs }
      if (results.length === 0)
        return { ...reply, calls: [{ name: "read", arguments: { filePath: "input.txt" } }] }
      if (results.length === 1)
        return {
          ...reply,
          calls: [{ name: "bash", arguments: { command: `echo ${turn} >> effects/${session}` } }],
        }
      answers.set(session, performance.now() + thinkMs)
      return {
        ...reply,
        text: Array.from({ length: deltas.count }, () => "word ").join(""),
        pieceSize: deltas.size,
        pieceDelayMs: deltas.everyMs,
      }
    },
  })
  return Object.assign(model, { arrivals, continued, answers })
}

/** Returns the text of a prompt, or undefined for other messages. */
function promptOf(message: ChatMessage | undefined): string | undefined {
  if (message?.role !== "user") return undefined
  return /s\d+ \d+/.exec(textOf(message.content))?.[0]
}

function textOf(content: ChatMessage["content"]): string {
  if (typeof content === "string") return content
  return (content ?? []).map(({ text = "" }) => text).join("\n")
}
