import type { RecordedRequest } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"

/** Characters of a streamed piece. */
const pieceSize = 8

/**
 * A model that works on each prompt in 10 steps, and then answers `Turn N is done.` Each step streams Markdown and runs a
 * command with 20 lines of output. `deltas` is the number of pieces of a step.
 */
export function streamingScript({
  deltas,
  delayMs,
}: {
  deltas: number
  delayMs: number
}): (request: RecordedRequest) => Reply {
  let step = 0
  return ({ body: { messages } }): Reply => {
    const asked = messages.findLastIndex(({ role }) => role === "user")
    const steps = messages.slice(asked).filter(({ role }) => role === "assistant").length
    const turn = messages.filter(({ role }) => role === "user").length
    if (steps === 10) return { text: `Turn ${turn} is done.` }
    step += 1
    const command = `for i in $(seq 20); do echo step ${step} line $i; done`
    return {
      ...{ text: markdown(step, deltas * pieceSize), pieceSize, pieceDelayMs: delayMs },
      calls: [{ name: "bash", arguments: { command, description: "Print lines" } }],
    }
  }
}

/** Returns Markdown of a length, which depends on the step. */
function markdown(step: number, length: number): string {
  const block = [
    `## Step ${step}`,
    `Some **words** about \`file-${step}.ts\`, with 漢字 and a [link](https://example.org/${step}).`,
    "- a first item\n- a second item that is so long that a terminal of forty columns has to wrap it\n- a third item",
    `\`\`\`ts\nexport const step = ${step}\nfor (const each of list) console.log(each)\n\`\`\``,
    "| name | value |\n|---|---|\n| one | 1 |\n| two | 2 |",
  ].join("\n\n")
  return `${block}\n\n`.repeat(Math.ceil(length / block.length)).slice(0, length)
}
