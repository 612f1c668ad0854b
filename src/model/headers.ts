/**
 * The part of the platform's `Headers` that the provider packages use: names in lower case, values of one name joined
 * by a comma, iteration in the order of the names. The bundle of the command takes it in place of the global one
 * (`scripts/build.ts`), whose first use loads Node's whole HTTP stack for browsers: 40 ms, half of a start.
 */
export class Headers implements Iterable<[string, string]> {
  readonly #values = new Map<string, string>()

  /** Throws `TypeError` for a name or value that no header can have. */
  constructor(init: Iterable<readonly [string, string]> | Readonly<Record<string, string>> = []) {
    for (const [name, value] of isIterable(init) ? init : Object.entries(init)) this.append(name, value)
  }

  append(name: string, value: string): void {
    const before = this.get(name)
    this.set(name, value)
    // Joined as they are: an empty value keeps its blank.
    if (before !== null) this.#values.set(name.toLowerCase(), `${before}, ${this.get(name)}`)
  }

  set(name: string, value: string): void {
    if (!isName.test(name)) throw new TypeError(`"${name}" is no name for a header.`)
    const trimmed = String(value).trim()
    if (cannotBeSent.test(trimmed))
      throw new TypeError(`The ${name} header holds a character that cannot be sent.`)
    this.#values.set(name.toLowerCase(), trimmed)
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  delete(name: string): void {
    this.#values.delete(name.toLowerCase())
  }

  forEach(visit: (value: string, name: string) => void): void {
    for (const [name, value] of this) visit(value, name)
  }

  entries(): ArrayIterator<[string, string]> {
    return [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1)).values()
  }

  [Symbol.iterator](): ArrayIterator<[string, string]> {
    return this.entries()
  }
}

const isName = /^[!#$%&'*+\-.^_`|~\w]+$/
/** Beyond Latin 1, or the end of a line. */
const cannotBeSent = /[\0\r\n]|[^\0-\xff]/

function isIterable(init: object): init is Iterable<readonly [string, string]> {
  return Symbol.iterator in init
}
