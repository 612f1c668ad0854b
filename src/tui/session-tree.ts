/** A session in a tree. */
export interface TreeSession {
  id: string
  /** Id of the session from which this session was copied, or whose call started this session. */
  parentID?: string
  time: { created: number; updated: number }
}

/**
 * Orders sessions as trees. Trees with newer changes come first. The children of a session are ordered from oldest to
 * newest. `lead` contains the characters before a session that draw the branches of its tree. A session whose parent is
 * not in the list is a root.
 */
export function sessionTree<T extends TreeSession>(sessions: readonly T[]): { session: T; lead: string }[] {
  const known = new Set(sessions.map(({ id }) => id))
  const children = new Map<string | undefined, T[]>()
  for (const session of sessions) {
    const parent =
      session.parentID !== undefined && known.has(session.parentID) ? session.parentID : undefined
    children.set(parent, [...(children.get(parent) ?? []), session])
  }
  const childrenOf = (id: string | undefined) =>
    (children.get(id) ?? []).toSorted((a, b) => a.time.created - b.time.created)

  function newest(session: T): number {
    return Math.max(session.time.updated, ...childrenOf(session.id).map(newest))
  }

  function below(id: string, lead: string): { session: T; lead: string }[] {
    const own = childrenOf(id)
    return own.flatMap((session, index) => {
      const isLast = index === own.length - 1
      return [
        { session, lead: `${lead}${isLast ? "└ " : "├ "}` },
        ...below(session.id, `${lead}${isLast ? "  " : "│ "}`),
      ]
    })
  }

  return childrenOf(undefined)
    .map((root) => ({ root, time: newest(root) }))
    .sort((a, b) => b.time - a.time)
    .flatMap(({ root }) => [{ session: root, lead: "" }, ...below(root.id, "")])
}
