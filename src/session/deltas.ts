import type { SecretMask } from "../tool/secrets.ts"

/** Text that streamed into one part. */
interface Delta {
  partID: string
  field: "text" | "raw"
  text: string
}

/** Text that streams in and was not announced yet. */
export interface Deltas {
  add(partID: string, field: Delta["field"], text: string): void
  /** Those that wait, which then wait no more. `closing`: parts whose new state comes next, so that nothing is held. */
  take(closing: readonly string[]): Delta[]
}

/** Deltas of one part are joined and announced at most this often: thirty times a second is as smooth as eyes need. */
const intervalMs = 33

/**
 * Joins deltas by part; `onDue` is called when some have waited for the interval. An end that may become a secret waits
 * for what follows it.
 */
export function createDeltas(onDue: () => void, mask: SecretMask | undefined): Deltas {
  let waiting = new Map<string, Delta>()
  let timer: NodeJS.Timeout | undefined

  return {
    take(closing) {
      clearTimeout(timer)
      timer = undefined
      if (waiting.size === 0) return []
      const taken = [...waiting.values()]
      waiting = new Map()
      if (!mask || mask.empty) return taken
      return taken.flatMap((delta) => {
        const { shown, held } = mask.split(delta.text)
        const whole = closing.includes(delta.partID)
        if (held !== "" && !whole) waiting.set(delta.partID, { ...delta, text: held })
        const text = whole ? shown + held : shown
        return text === "" ? [] : [{ ...delta, text }]
      })
    },
    add(partID, field, text) {
      const entry = waiting.get(partID)
      if (entry) entry.text += text
      else waiting.set(partID, { partID, field, text })
      timer ??= setTimeout(onDue, intervalMs)
    },
  }
}
