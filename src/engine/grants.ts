import { McpToolChangedError } from "../mcp/client/errors.ts"
import type { Grant } from "../schema/permission.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Grants } from "../store/grants.ts"
import { UsageError } from "../util/errors.ts"

/** What people allowed with "always" in a work tree. */
export interface WorktreeGrants {
  /** Allowed "in this session" at a subagent's question, it holds for all that works on the person's request. */
  save(added: readonly Grant[]): Promise<void>
  /** Of the project and of its sessions, oldest first. */
  list(): Promise<Grant[]>
  /** Throws `UsageError` for an id that no grant of the work tree has, and then takes none back. */
  revoke(ids: readonly string[]): Promise<void>
  /** Takes back what was allowed of tools that are no longer what they were; with an error that says of which. */
  lapse(tools: readonly string[]): Promise<McpToolChangedError | undefined>
}

/** Over the book, which knows of no work tree and no family of sessions. */
export function createWorktreeGrants(
  book: Grants,
  lineage: Pick<Lineage, "rootOf">,
  worktree: string,
): WorktreeGrants {
  function forFamily(grant: Grant): Grant {
    return grant.sessionID === undefined ? grant : { ...grant, sessionID: lineage.rootOf(grant.sessionID) }
  }

  return {
    save: (added) => book.add(added.map(forFamily)),
    list: () => book.list(worktree),
    async revoke(ids) {
      const known = new Set((await book.list(worktree)).map(({ id }) => id))
      const unknown = ids.find((id) => !known.has(id))
      if (unknown !== undefined)
        throw new UsageError(
          `There is no grant "${unknown}" in ${worktree}. \`tackle permission list\` shows them.`,
        )
      await book.remove(ids)
    },
    async lapse(tools) {
      const granted = (await book.list(worktree)).filter(({ permission }) => tools.includes(permission))
      if (granted.length === 0) return undefined
      await book.remove(granted.map(({ id }) => id))
      return new McpToolChangedError([...new Set(granted.map(({ permission }) => permission))].join(", "))
    },
  }
}
