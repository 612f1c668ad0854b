import { isRecord } from "../util/json.ts"

/** A value to mask, and the name that replaces it. */
export interface Secret {
  name: string
  value: string
}

/** Replaces every secret with `[secret NAME]`. Values without secrets do not change. */
export interface SecretMask {
  /** True if there are no secrets. */
  readonly empty: boolean
  /** Adds secrets. Streams that are already open also mask the new secrets. Secrets are never removed. */
  add(secrets: readonly Secret[]): void
  text(text: string): string
  /** Masks every string in a plain value, at any depth. Does not mask keys, and does not change the given value. */
  value<T>(value: T): T
  /** Returns a mask for output that arrives in chunks. A secret may span several chunks. */
  stream(): MaskedStream
  /**
   * Masks streamed text. `held` is the end of the text if it could be the beginning of a secret, and otherwise an empty
   * string.
   */
  split(text: string): { shown: string; held: string }
}

/** Masks output in chunks. Holds back the end of the output while it could be the beginning of a secret. */
export interface MaskedStream {
  /** Returns masked output. Holds back less than the length of the longest secret. May return the chunk itself. */
  push(chunk: Uint8Array): Uint8Array
  /** Returns the output that was held back, masked. */
  end(): Uint8Array
}

/** Minimum length of a secret, in characters. Shorter values, such as `yes` or a port, are common in other text. */
const shortestSecret = 8

/**
 * Creates a mask. Ignores values shorter than `shortestSecret`. If two secrets have the same value, the first name is
 * shown.
 */
export function createSecretMask(secrets: readonly Secret[] = []): SecretMask {
  let hidden: readonly Hidden[] = []

  function add(more: readonly Secret[]): void {
    const known = new Set(hidden.map(({ value }) => value))
    const added: Hidden[] = []
    for (const { name, value } of more) {
      if (value.length < shortestSecret || known.has(value)) continue
      for (const spelling of spellings(value)) {
        known.add(spelling)
        added.push({ value: spelling, mark: `[secret ${name}]` })
      }
    }
    // Longest first, because one secret may be a prefix of another.
    if (added.length > 0) hidden = [...hidden, ...added].sort((a, b) => b.value.length - a.value.length)
  }

  const text = (given: string) =>
    hidden.reduce(
      // Most texts contain no secret, and searching is faster than replacing.
      (masked, { value, mark }) => (masked.includes(value) ? masked.replaceAll(value, () => mark) : masked),
      given,
    )

  function value<T>(given: T): T
  function value(given: unknown): unknown {
    if (typeof given === "string") return text(given)
    if (Array.isArray(given)) return given.map(value)
    if (!isRecord(given)) return given
    let masked = given
    for (const key of Object.keys(given)) {
      const inner = value(given[key])
      if (inner === given[key]) continue
      if (masked === given) masked = { ...given }
      masked[key] = inner
    }
    return masked
  }

  add(secrets)
  return {
    get empty() {
      return hidden.length === 0
    },
    add,
    text,
    value: (given) => (hidden.length === 0 ? given : value(given)),
    split: (given) => splitText(given, hidden),
    stream: () => maskStream(() => hidden),
  }
}

/** Returns the value in two spellings: unchanged, and escaped as in JSON, for example in the arguments of a call. */
function spellings(value: string): Set<string> {
  return new Set([value, JSON.stringify(value).slice(1, -1)])
}

interface Hidden {
  value: string
  mark: string
}

/** Masks streamed text. `hidden` is sorted, longest first. */
function splitText(text: string, hidden: readonly Hidden[]): { shown: string; held: string } {
  if (hidden.length === 0) return { shown: text, held: "" }
  const initials = new Set(hidden.map(({ value }) => value.charAt(0)))
  let shown = ""
  let from = 0
  for (let at = 0; at < text.length; ) {
    // Most characters cannot begin a secret.
    if (!initials.has(text.charAt(at))) {
      at += 1
      continue
    }
    const rest = text.length - at
    if (hidden.some(({ value }) => value.length > rest && value.endsWith(text.slice(at), rest))) {
      return { shown: shown + text.slice(from, at), held: text.slice(at) }
    }
    const found = hidden.find(({ value }) => text.startsWith(value, at))
    if (found) shown += text.slice(from, at) + found.mark
    at += found?.value.length ?? 1
    if (found) from = at
  }
  return { shown: shown + text.slice(from), held: "" }
}

type HiddenBytes = readonly [value: Buffer, mark: Buffer]

/** Creates a stream mask. `current` may return more secrets while the stream is open. */
function maskStream(current: () => readonly Hidden[]): MaskedStream {
  let known: readonly Hidden[] = []
  let hidden: readonly HiddenBytes[] = []
  let longest = 0
  let held: Buffer = Buffer.alloc(0)

  function update(): void {
    if (known === current()) return
    known = current()
    hidden = known.map(({ value, mark }) => [Buffer.from(value), Buffer.from(mark)])
    longest = Math.max(...hidden.map(([value]) => value.length))
  }

  return {
    push(chunk) {
      update()
      if (hidden.length === 0) return chunk
      const bytes = Buffer.concat([held, chunk])
      const { done, next } = maskUntil(bytes, Math.max(0, bytes.length - longest + 1), hidden)
      held = Buffer.from(bytes.subarray(next))
      return done
    },
    end() {
      update()
      const { done } = maskUntil(held, held.length, hidden)
      held = Buffer.alloc(0)
      return done
    },
  }
}

/** Masks every secret that begins before `limit`. `next` is the index of the first byte after the result. */
function maskUntil(
  bytes: Buffer,
  limit: number,
  hidden: readonly HiddenBytes[],
): { done: Buffer; next: number } {
  const pieces: Buffer[] = []
  let from = 0
  for (;;) {
    const found = firstOf(bytes, from, hidden)
    if (found === undefined || found.at >= limit) break
    pieces.push(bytes.subarray(from, found.at), found.mark)
    from = found.at + found.length
  }
  if (from < limit) pieces.push(bytes.subarray(from, limit))
  return { done: Buffer.concat(pieces), next: Math.max(from, limit) }
}

function firstOf(bytes: Buffer, from: number, hidden: readonly HiddenBytes[]) {
  let first: { at: number; length: number; mark: Buffer } | undefined
  for (const [value, mark] of hidden) {
    const at = bytes.indexOf(value, from)
    if (at !== -1 && (first === undefined || at < first.at)) first = { at, length: value.length, mark }
  }
  return first
}
