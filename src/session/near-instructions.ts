import type { MessageWithParts } from "../schema/message.ts"
import type { FoundInstructions, InstructionCapability } from "../tool/context.ts"

/**
 * Gives each text of instructions once a session. What earlier calls of the history were given, by the list
 * `instructions` in their metadata, counts as given.
 */
export function createNearInstructions(
  find: (file: string) => Promise<FoundInstructions[]>,
  history: readonly MessageWithParts[],
): InstructionCapability {
  const given = new Set(history.flatMap(({ parts }) => parts.flatMap(givenIn)))
  return {
    async near(file) {
      const found = await find(file)
      const fresh = found.filter(({ path }) => !given.has(path))
      for (const { path } of found) given.add(path)
      return fresh
    },
  }
}

function givenIn(part: MessageWithParts["parts"][number]): string[] {
  if (part.type !== "tool" || part.state.status !== "completed" || part.state.pruned !== undefined) return []
  const { instructions } = part.state.metadata
  return Array.isArray(instructions) ? instructions.filter((path) => typeof path === "string") : []
}
