import { createTackle } from "../src/index.ts"
import type { MessageWithParts } from "../src/schema/message.ts"
import type { Part } from "../src/schema/part.ts"
import type { Session } from "../src/schema/session.ts"

const turns = 500
/** Parts of a turn: the prompt, and four steps with a text and a call. */
const turnParts = 10

/** The last text in the session. */
export const lastText = "This is the end of the session."

/** Stores a session with 5,000 parts in a data directory. Resolves with the session id. */
export async function storeLongSession(directory: string, dataDirectory: string): Promise<string> {
  const tackle = await createTackle({ directory, dataDirectory, sandbox: "off" })
  try {
    const { id } = await tackle.sessions.create({ title: "Long session" })
    const archive = await tackle.sessions.export(id)
    if (!archive) throw new Error("The new session is missing.")
    await tackle.sessions.delete(id)
    const messages = Array.from({ length: turns }, (_, turn) => messagesOf(archive.session, turn)).flat()
    return (await tackle.sessions.import({ ...archive, messages })).id
  } finally {
    await tackle.close()
  }
}

function messagesOf({ id: sessionID, agent, time }: Session, turn: number): MessageWithParts[] {
  const model = { providerID: "bench", modelID: "m" }
  const id = `msg_${String(turn).padStart(4, "0")}`
  const [userID, answerID] = [`${id}_0`, `${id}_1`]
  const created = time.created + turn
  const part = (messageID: string, index: number) => ({ id: `prt_${turn}_${index}`, sessionID, messageID })
  const parts = Array.from({ length: turnParts - 1 }, (_, index): Part => {
    const base = part(answerID, index + 1)
    const isLast = turn === turns - 1 && index === turnParts - 2
    if (index % 2 === 0) return { ...base, type: "text", text: isLast ? lastText : answerText(index) }
    return {
      ...{ ...base, type: "tool", tool: "bash", callID: `call_${turn}_${index}` },
      state: {
        ...{ status: "completed", title: "List the files", time: { start: created, end: created } },
        input: { command: "ls src", description: "List the files" },
        output: "agent\ncall\ncli\nclient\nconfig\nengine\n".repeat(5),
        metadata: { exit: 0, output: "agent\ncall\ncli\nclient\nconfig\nengine\n".repeat(5) },
      },
    }
  })
  return [
    {
      message: { id: userID, sessionID, role: "user", time: { created }, agent, model },
      parts: [{ ...part(userID, 0), type: "text", text: `Do step ${turn} of the plan.` }],
    },
    {
      message: {
        ...{ id: answerID, sessionID, role: "assistant", parentID: userID, agent, model, cost: 0 },
        time: { created, completed: created },
        path: { cwd: "/", root: "/" },
        tokens: { input: 1_000, output: 100, reasoning: 0, cache: { read: 0, write: 0 } },
        finish: "stop",
      },
      parts,
    },
  ]
}

function answerText(index: number): string {
  return `Step **${index}** changes \`src/file-${index}.ts\`:\n\n- the first reason\n- the second reason\n\n\`\`\`ts\nexport const step = ${index}\n\`\`\``
}
