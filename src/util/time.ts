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

/** Maximum delay of a timer in milliseconds. Node fires a timer with a longer delay after 1 ms. */
export const longestTimerMs = 2 ** 31 - 1

const minuteMs = 60_000

/** Formats a time, given in milliseconds since the epoch, in the local time zone: `2026-11-21 10:39`. */
export function localMinute(time: number): string {
  const shifted = time - new Date(time).getTimezoneOffset() * minuteMs
  return new Date(shifted).toISOString().slice(0, 16).replace("T", " ")
}

/** Formats the date of a time, given in milliseconds since the epoch, in the local time zone: `2026-11-21`. */
export function localDay(time: number): string {
  return localMinute(time).slice(0, 10)
}

/** Formats a duration in milliseconds as seconds: `0.4 s`. */
export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
