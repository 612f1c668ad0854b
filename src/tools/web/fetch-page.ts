import { TimeoutError } from "../../util/abort.ts"
import { acceptedEncodings, httpGet } from "./http-get.ts"
import { resolveHost } from "./resolve-host.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** More is not read of a page, in bytes after decompression. */
const maxBodyBytes = 5 * 1024 * 1024

const maxRedirects = 10

/** The name that servers are told. Not a browser's: nobody is to be misled. */
const userAgent = "Mozilla/5.0 (compatible; Tackle)"

/** A page as it came. */
export interface Page {
  /** Where it was in the end. */
  url: URL
  /** The value of `content-type`, empty without one. */
  contentType: string
  body: Buffer
  /** The addresses that leave was asked for, the first one too. */
  asked: URL[]
  /** Whether it may be shown again without being fetched. */
  cacheable: boolean
}

/** What to fetch and whom to ask before. */
export interface PageRequest {
  url: URL
  accept: string
  /** For all that happens on the network; the time in which a person thinks does not count. */
  timeoutMs: number
  signal: AbortSignal
  /** Resolves if the page may be fetched. Called once for each address on the way: rules may name paths of one host. */
  askUrl(url: URL): Promise<void>
  /** Resolves if a host may be reached that has an address which is not public. */
  askPrivate(url: URL, host: string, addresses: readonly string[]): Promise<void>
}

/**
 * Fetches a page over any redirects; each of them is looked at like the first address. Names are resolved once, and
 * what was found is what is connected to. Throws {@link WebfetchError} for everything but success, `TimeoutError`, what
 * the asking throws, and the signal's reason.
 */
export async function fetchPage(request: PageRequest): Promise<Page> {
  const clock = createClock(request.timeoutMs, request.signal)
  const headers = { accept: request.accept, "accept-encoding": acceptedEncodings, "user-agent": userAgent }
  const asked: URL[] = []
  let url = request.url
  let isPrivate = false
  for (let hop = 0; hop <= maxRedirects; hop++) {
    const { href } = url
    if (!asked.some((known) => known.href === href)) {
      await request.askUrl(url)
      asked.push(url)
    }
    const at = url
    const { host, addresses, inside } = await clock.run((signal) => resolveHost(at, signal))
    if (inside.length > 0) {
      isPrivate = true
      await request.askPrivate(url, host, inside)
    }
    const answer = await clock.run((signal) =>
      httpGet({ url: at, addresses, headers, maxBytes: maxBodyBytes, signal }),
    )
    const { location } = answer.headers
    if (answer.status >= 300 && answer.status < 400 && location !== undefined) {
      url = parseUrl(location, url)
      continue
    }
    if (answer.status < 200 || answer.status >= 300) throw statusError(url, answer.status)
    const kept = answer.headers["cache-control"] ?? ""
    const cacheable = !isPrivate && !/\bno-(?:store|cache)\b/i.test(kept)
    return { url, contentType: answer.headers["content-type"] ?? "", body: answer.body, asked, cacheable }
  }
  throw new WebfetchError("redirect", `${request.url} redirects more than ${maxRedirects} times.`)
}

/** An address that may be fetched, in its plain form and without its fragment. `base`: of the page that leads to it. */
export function parseUrl(text: string, base?: URL): URL {
  const from = base ? ` (redirect from ${base})` : ""
  if (!URL.canParse(text, base?.href)) {
    throw new WebfetchError(
      "url",
      `Invalid URL "${text}"${from}. Pass a complete URL, such as https://example.com/page.`,
    )
  }
  const url = new URL(text, base)
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new WebfetchError(
      "url",
      `Unsupported protocol ${url.protocol}${from}. Use http:// or https://; for files use read.`,
    )
  }
  if (url.username !== "" || url.password !== "") {
    throw new WebfetchError(
      "url",
      `The URL contains a user name or password${from}. Credentials are never sent: remove them.`,
    )
  }
  url.hash = ""
  return plainForm(url)
}

/** What has several spellings that mean the same has one here, so that a rule cannot be got round by another. */
function plainForm(url: URL): URL {
  const plain = new URL(url)
  plain.hostname = plain.hostname.replace(/\.+$/, "")
  plain.pathname = plain.pathname.replaceAll(/%(?:2d|2e|5f|7e|3\d|[46][1-9a-f]|[57][0-9a])/gi, (code) => {
    const letter = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return /[\w.~-]/.test(letter) ? letter : code
  })
  return plain
}

function statusError(url: URL, status: number): WebfetchError {
  const advice =
    status === 404 || status === 410
      ? "The page does not exist. Check the URL."
      : status === 401 || status === 403
        ? "The page is not public, and webfetch cannot log in."
        : status === 429 || status >= 500
          ? "Wait before you try again, or continue without it."
          : "Continue without it."
  return new WebfetchError("status", `${url} returned HTTP ${status}. ${advice}`)
}

/** A budget of time that only runs while it is worked. */
function createClock(budgetMs: number, signal: AbortSignal) {
  let leftMs = budgetMs
  return {
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const late = new AbortController()
      const error = new TimeoutError(
        `The page did not load within ${budgetMs / 1000} s. Try again with a longer timeout, or continue without it.`,
        budgetMs,
      )
      const started = performance.now()
      const timer = setTimeout(() => late.abort(error), Math.max(0, leftMs))
      try {
        return await work(AbortSignal.any([signal, late.signal]))
      } finally {
        clearTimeout(timer)
        leftMs -= performance.now() - started
      }
    },
  }
}
