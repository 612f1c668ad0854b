import type { Page } from "./fetch-page.ts"

/** Time in milliseconds that a page stays cached. */
const lifetimeMs = 15 * 60 * 1000

/** Maximum total size of the cached pages, in bytes. */
const maxBytes = 50 * 1024 * 1024

/** A cache of recently fetched pages. */
export interface PageCache {
  get(key: string): Page | undefined
  set(key: string, page: Page): void
}

/**
 * Creates a cache that keeps pages for 15 minutes, up to 50 MB in total. The oldest pages are dropped first. `now`
 * returns the time in milliseconds.
 */
export function createPageCache(now: () => number = Date.now): PageCache {
  /** The cached pages, oldest first. */
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
