import type { Page } from "./fetch-page.ts"

/** How long a page is shown again without being fetched, in milliseconds. */
const lifetimeMs = 15 * 60 * 1000

/** Bytes of all pages together that are kept. */
const maxBytes = 50 * 1024 * 1024

/** Pages that were fetched a short time ago. */
export interface PageCache {
  get(key: string): Page | undefined
  set(key: string, page: Page): void
}

/** Keeps pages for 15 minutes and up to 50 MB; the oldest go first. `now`: milliseconds, of any clock. */
export function createPageCache(now: () => number = Date.now): PageCache {
  /** In the order in which they came. */
  const pages = new Map<string, { page: Page; until: number }>()
  let bytes = 0

  function drop(key: string): void {
    bytes -= pages.get(key)?.page.body.length ?? 0
    pages.delete(key)
  }

  return {
    get(key) {
      const entry = pages.get(key)
      if (entry && entry.until > now()) return entry.page
      drop(key)
      return undefined
    },
    set(key, page) {
      drop(key)
      pages.set(key, { page, until: now() + lifetimeMs })
      bytes += page.body.length
      for (const [oldest, { until }] of pages) {
        if (bytes <= maxBytes && until > now()) break
        drop(oldest)
      }
    },
  }
}
