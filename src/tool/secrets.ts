import { isRecord } from "../util/json.ts"

/** A value that must not be seen, under the name that is shown in its place. */
export interface Secret {
  name: string
  value: string
}

/** Puts `[secret NAME]` in the place of every secret. One that knows none hands on what it is given, untouched. */
export interface SecretMask {
  /** Whether it knows none, so that nothing needs to be looked through. */
  readonly empty: boolean
  /** From here on these are hidden too, also in streams that are open. Nothing that was known is forgotten. */
  add(secrets: readonly Secret[]): void
  text(text: string): string
  /** Every text within a plain value, at any depth; keys stay. */
  value<T>(value: T): T
  /** For output that comes in pieces: a secret may be cut between two. */
  stream(): MaskedStream
  /** For text that people watch as it grows: all but an end that may be the beginning of a secret, which is `held`. */
  split(text: string): { shown: string; held: string }
}

/** Output on its way through the mask. What may be the beginning of a secret waits for what comes next. */
export interface MaskedStream {
  /** What can be handed on: up to the longest secret's length less than what came in so far. Its own bytes. */
  push(chunk: Uint8Array): Uint8Array
  /** What was held back. */
  end(): Uint8Array
}

/** Shorter values, such as `yes` or a port, stand in too much other text to be secrets. In characters. */
export const shortestSecret = 8

/** Values shorter than `shortestSecret` are left out. Of two names for one value the first is shown. */
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
    // Longer ones first: one secret may be the beginning of another.
    if (added.length > 0) hidden = [...hidden, ...added].sort((a, b) => b.value.length - a.value.length)
  }

  const text = (given: string) =>
    hidden.reduce((masked, { value, mark }) => masked.replaceAll(value, () => mark), given)

  function value<T>(given: T): T
  function value(given: unknown): unknown {
    if (typeof given === "string") return text(given)
    if (Array.isArray(given)) return given.map(value)
    if (!isRecord(given)) return given
    return Object.fromEntries(Object.entries(given).map(([key, inner]) => [key, value(inner)]))
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

/** As it is, and as it stands within a JSON text, such as the arguments of a call. */
function spellings(value: string): Set<string> {
  return new Set([value, JSON.stringify(value).slice(1, -1)])
}

interface Hidden {
  value: string
  mark: string
}

/** `hidden`: the longest first. */
function splitText(text: string, hidden: readonly Hidden[]): { shown: string; held: string } {
  if (hidden.length === 0) return { shown: text, held: "" }
  let shown = ""
  let from = 0
  for (let at = 0; at < text.length; ) {
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

/** `current` may come to give more while the stream is open. */
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

/** Masks every secret that begins before `limit`; `next` is the first byte that is not part of the result. */
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
