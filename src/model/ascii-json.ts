/**
 * A value as JSON that is ASCII (`\u2192` for an arrow). One wider character anywhere makes the engine's string twice as
 * large, and its sending several times slower. The value must be one that JSON has: not `undefined`.
 */
export function asciiJson(value: unknown): string {
  const json = JSON.stringify(value).replaceAll(
    wide,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
  // What came of a wide string is still kept wide; the way through bytes makes it narrow.
  return json.length < worthNarrowing ? json : Buffer.from(json, "latin1").toString("latin1")
}

const wide = /[\u007f-\uffff]/g

/** In characters: shorter ones cost less as they are. */
const worthNarrowing = 64
