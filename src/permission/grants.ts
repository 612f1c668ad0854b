import type { Grant, PermissionReply, PermissionRequest } from "../schema/permission.ts"
import { UsageError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { wildcardCovers } from "../util/wildcard.ts"

/**
 * The grants that an "always" comes to. Throws `UsageError` where the request does not offer it, or where a pattern
 * reaches further than what was offered.
 */
export function grantsOf(
  reply: Extract<PermissionReply, { reply: "always" }>,
  request: PermissionRequest,
  worktree: string,
): Grant[] {
  const { always, permission, sessionID } = request
  if (always.length === 0)
    throw new UsageError(`"always" is not on offer for this ${permission} request. Answer once or reject.`)
  const patterns = reply.patterns ?? always
  if (patterns.length === 0)
    throw new UsageError('"always" needs at least one pattern. Leave them out to take those on offer.')
  const foreign = patterns.find((pattern) => !always.some((offered) => wildcardCovers(offered, pattern)))
  if (foreign !== undefined) {
    throw new UsageError(
      `The pattern "${foreign}" reaches further than what this request offers: ${always.join(", ")}.`,
    )
  }
  const scope = reply.scope === "session" ? { scope: reply.scope, sessionID } : { scope: reply.scope }
  const time = { created: Date.now() }
  return patterns.map((pattern) => ({
    id: newId("gra"),
    ...scope,
    worktree,
    permission,
    pattern,
    action: "allow",
    time,
  }))
}
