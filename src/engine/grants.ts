import { McpToolChangedError } from "../mcp/client/errors.ts"
import type { Grant } from "../schema/permission.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Grants } from "../store/grants.ts"
import { UsageError } from "../util/errors.ts"

/** Permissions that the user granted with "always" in a worktree. */
export interface WorktreeGrants {
  /** Stores grants. A grant for "this session" that a subagent requested applies to its whole session family. */
  save(added: readonly Grant[]): Promise<void>
  /** Lists the grants of the project and its sessions, oldest first. */
  list(): Promise<Grant[]>
  /** Revokes grants by id. If an id has no grant in the worktree, throws `UsageError` and revokes no grants. */
  revoke(ids: readonly string[]): Promise<void>
  /**
   * Revokes the grants of tools whose definitions changed. Returns an error that names these tools, or undefined if
   * none of these tools had a grant.
   */
  lapse(tools: readonly string[]): Promise<McpToolChangedError | undefined>
}

/**
 * Creates the grants of a worktree. The underlying `grants` stores them, but does not know which sessions belong to a
 * worktree or family.
 */
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
          `Unknown grant "${unknown}" in ${worktree}. \`tackle permission list\` lists the grants.`,
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
