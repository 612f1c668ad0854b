/** The output of a command as the model reads it: never nothing, so that nothing cannot be taken for a fault. */
export function describeOutput(text: string, bytes: number): string {
  if (text !== "") return text.endsWith("\n") ? text.slice(0, -1) : text
  return bytes === 0 ? "(no output)" : `(${bytes} bytes, no printable text)`
}

/** A span of time for people and models: `0.4 s`. */
export function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
