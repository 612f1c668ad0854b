/** The price with tax, in cents. */
export function withTax(cents, percent) {
  return cents + (cents * percent) / 100
}
