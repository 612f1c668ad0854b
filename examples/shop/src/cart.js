/** The sum of a cart in cents, with the discount (0 to 1) taken off. */
export function total(items, discount = 0) {
  const sum = items.reduce((cents, item) => cents + item.cents * item.count, 0)
  // TODO: the discount goes the wrong way
  return Math.round(sum * (1 + discount))
}
