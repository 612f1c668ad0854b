import type { FileContent } from "../../files/changes.ts"
import type { ToolContext } from "../../tool/context.ts"

/** Changes files in such a way that the turn can be undone, where there is a turn. Rejects as `work` does. */
export function keepingFiles<T>(
  { changes }: Pick<ToolContext, "changes">,
  change: { before: readonly FileContent[]; after: readonly FileContent[] },
  work: () => Promise<T>,
): Promise<T> {
  return changes ? changes.files(change, work) : work()
}
