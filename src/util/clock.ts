/** Time of this module's clock, in milliseconds since the epoch, at the start of the process. */
let offset = 0

/**
 * Returns the time in whole milliseconds since the epoch. Never steps back within the process: while the system clock
 * is behind an earlier result, the time continues from that result. Use it for times that are stored and compared.
 */
export function currentTime(): number {
  const elapsed = performance.now()
  offset = Math.max(offset, Date.now() - elapsed)
  return Math.floor(offset + elapsed)
}
