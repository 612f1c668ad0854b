const minuteMs = 60_000

/** Formats a time in milliseconds since the epoch in the local time zone: `2026-11-21 10:39`. */
export function localMinute(time: number): string {
  const shifted = time - new Date(time).getTimezoneOffset() * minuteMs
  return new Date(shifted).toISOString().slice(0, 16).replace("T", " ")
}

/** Formats the date of a time in milliseconds since the epoch, in the local time zone: `2026-11-21`. */
export function localDay(time: number): string {
  return localMinute(time).slice(0, 10)
}

/** Formats a duration in milliseconds as seconds: `0.4 s`. */
export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
