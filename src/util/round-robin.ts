/**
 * Returns the index of the waiting item to start next, or -1 if none waits. Takes turns between groups, so that a group
 * with many items does not delay the others. Within a group, the oldest item is first. `waiting` contains the group of
 * each item, oldest first. `served` contains the groups in the order of their last start, as {@link afterTurn} returns it.
 */
export function nextInTurn<G>(waiting: readonly G[], served: readonly G[]): number {
  // A group that was never served has the index -1.
  const ranks = waiting.map((group) => served.indexOf(group))
  return ranks.indexOf(Math.min(...ranks))
}

/** Returns the order of the groups after one of them has started an item. */
export function afterTurn<G>(served: readonly G[], group: G): G[] {
  return [...served.filter((each) => each !== group), group]
}
