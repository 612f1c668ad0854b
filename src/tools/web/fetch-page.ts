import type { LookupAddress } from "node:dns"
import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import { abortedError, orAbort, withTimeLimit } from "../../util/abort.ts"
import { systemCode } from "../../util/errors.ts"
import { isPrivateAddress } from "../../util/private-address.ts"
import { acceptedEncodings, httpGet } from "./http-get.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** Maximum size of a page after decompression, in bytes. */
const maxBodyBytes = 5 * 1024 * 1024

const maxRedirects = 10

/** User agent that identifies the client and does not imitate a browser. */
const userAgent = "Mozilla/5.0 (compatible; Tackle)"

/** A fetched page. */
export interface Page {
  /** URL of the page after redirects. */
  url: URL
  /** Value of the `content-type` header. May be empty. */
  contentType: string
  body: Buffer
  /** URLs for which permission was requested, in order. The first is the requested URL. */
  asked: URL[]
  cacheable: boolean
}

/** A page to fetch, and functions that request permission. */
export interface PageRequest {
  url: URL
  accept: string
  /** Time limit in milliseconds for all network activity. Time spent waiting for the user does not count. */
  timeoutMs: number
  signal: AbortSignal
  /**
   * Resolves if the URL may be fetched, and rejects otherwise. Called once per URL, because rules can match individual
   * paths on a host.
   */
  askUrl(url: URL): Promise<void>
  /** Resolves if a host with non-public addresses may be contacted, and rejects otherwise. */
  askPrivate(url: URL, host: string, addresses: readonly string[]): Promise<void>
}

/**
 * Fetches a page and follows redirects. Each redirect is checked like the first URL. Each host name is resolved once
 * per request, and the connection uses the checked addresses. Throws {@link WebfetchError} if the page cannot be
 * fetched, `TimeoutError` at the time limit, and the errors that `askUrl` and `askPrivate` throw. Throws the error that
 * `abortedError` returns if the signal aborts.
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
    const response = await clock.run((signal) =>
      httpGet({ url: at, addresses, headers, maxBytes: maxBodyBytes, signal }),
    )
    const { status, headers: received, body } = response
    if (status >= 300 && status < 400 && received.location !== undefined) {
      url = parseUrl(received.location, url)
      continue
    }
    if (status < 200 || status >= 300) throw statusError(url, status)
    const cacheable = !isPrivate && !/\bno-(?:store|cache)\b/i.test(received["cache-control"] ?? "")
    return { url, contentType: received["content-type"] ?? "", body, asked, cacheable }
  }
  throw new WebfetchError(
    "redirect",
    `${request.url} redirects more than ${maxRedirects} times. Continue without the page.`,
  )
}

/**
 * Parses a URL and returns it in canonical form and without a fragment. `base` is the URL that redirected to this URL.
 * Throws {@link WebfetchError} if the URL is invalid or cannot be fetched.
 */
export function parseUrl(text: string, base?: URL): URL {
  const from = base ? ` (redirect from ${base})` : ""
  /** Returns the advice. For the target of a redirect, which the model cannot change, advises it to continue. */
  const next = (advice: string) => (base ? "Continue without the page." : advice)
  if (!URL.canParse(text, base?.href)) {
    throw new WebfetchError(
      "url",
      `Invalid URL "${text}"${from}. ${next("Pass a complete URL, such as https://example.com/page.")}`,
    )
  }
  const url = new URL(text, base)
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new WebfetchError(
      "url",
      `Unsupported protocol ${url.protocol}${from}. ${next("Use http:// or https://. For files, use read.")}`,
    )
  }
  if (url.username !== "" || url.password !== "") {
    throw new WebfetchError(
      "url",
      `The URL contains a user name or password${from}. Credentials are never sent. ${next("Remove them.")}`,
    )
  }
  url.hash = ""
  return canonical(url)
}

/** Returns one spelling for equivalent URLs, so that a different spelling cannot evade a rule. */
function canonical(url: URL): URL {
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
          ? "Wait before you try again, or continue without the page."
          : "Continue without the page."
  return new WebfetchError("status", `${url} returned HTTP ${status}. ${advice}`)
}

/** A host and its resolved addresses. */
export interface ResolvedHost {
  /** Host name or IP address, without the brackets of an IPv6 address, as in rules for `private_network`. */
  host: string
  addresses: LookupAddress[]
  /**
   * Addresses outside the public internet. If the list is not empty, permission is requested before the host is
   * contacted.
   */
  inside: string[]
}

/**
 * Resolves the URL's host. Throws {@link WebfetchError} if the host cannot be resolved, and the error that
 * `abortedError` returns if the signal aborts.
 */
export async function resolveHost(url: URL, signal: AbortSignal): Promise<ResolvedHost> {
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const addresses = await addressesOf(host, signal)
  const inside = addresses.map(({ address }) => address).filter(isPrivateAddress)
  return { host, addresses, inside }
}

async function addressesOf(host: string, signal: AbortSignal): Promise<LookupAddress[]> {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  try {
    return await orAbort(lookup(host, { all: true }), signal)
  } catch (error) {
    if (signal.aborted) throw abortedError(signal)
    const what =
      systemCode(error) === "ENOTFOUND"
        ? "the host does not exist. Check the URL."
        : "its name cannot be resolved. Try again later, or continue without the page."
    throw new WebfetchError("network", `Cannot reach ${host}: ${what}`, error)
  }
}

/** Creates a time budget that decreases only while `run` executes work. */
function createClock(budgetMs: number, signal: AbortSignal) {
  let leftMs = budgetMs
  return {
    async run<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      const message = `The page did not load within ${budgetMs / 1000} s. Try again with a longer timeout, or continue without the page.`
      const started = performance.now()
      try {
        return await withTimeLimit({ ms: Math.max(0, leftMs), message, signal }, work)
      } finally {
        leftMs -= performance.now() - started
      }
    },
  }
}
