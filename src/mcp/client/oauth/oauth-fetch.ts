/** How long a server may take for one answer. In milliseconds. */
const answerMs = 30_000

/**
 * For the requests of signing in, which go to other servers than the one that is signed in to: without its headers. What
 * carries a code or a secret follows no redirect.
 */
export function createOAuthFetch(signal: AbortSignal) {
  return (url: string | URL, init: RequestInit = {}): Promise<Response> =>
    fetch(url, {
      ...init,
      signal: AbortSignal.any([signal, AbortSignal.timeout(answerMs)]),
      redirect: (init.method ?? "GET") === "GET" ? "follow" : "error",
    })
}
