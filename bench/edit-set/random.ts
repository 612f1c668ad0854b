/** Numbers that look like chance and are the same for the same seed. */
export interface Random {
  /** A whole number from 0 to below `limit`. */
  below(limit: number): number
  /** One of them. Throws for an empty list. */
  pick<T>(items: readonly T[]): T
}

/** By mulberry32: a state of 32 bits, mixed anew for each number. */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const below = (limit: number) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  return {
    below,
    pick(items) {
      const item = items[below(items.length)]
      if (item === undefined) throw new Error("There is nothing to pick from.")
      return item
    },
  }
}
