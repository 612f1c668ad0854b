const minuteMs = 60_000

/** `2026-11-21 10:39`, on the clock of whoever sits at this machine. `time` in milliseconds since 1970. */
export function localMinute(time: number): string {
  const shifted = time - new Date(time).getTimezoneOffset() * minuteMs
  return new Date(shifted).toISOString().slice(0, 16).replace("T", " ")
}

/** `2026-11-21`, likewise. */
export function localDay(time: number): string {
  return localMinute(time).slice(0, 10)
}
