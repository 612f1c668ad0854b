import type { PermissionAsk } from "../permission/request.ts"
import { errorMessage } from "../util/errors.ts"
import { resolvePath } from "../util/paths.ts"

/** How long a name may take to be looked up, in milliseconds: nobody waits longer for a verdict. */
const lookupMs = 5000

/** What a tool asks leave for, one after the other: what follows a refusal is not asked, nor looked for. */
export type AskSequence = AsyncGenerator<PermissionAsk, void, void>

/**
 * The requests of a tool that asks for `permission` with what a person named: a place for `list`, which may lie outside
 * or be protected; for `webfetch` its address in its plain form, then the hosts that are not of the public internet.
 * `note` is told what could not be found out.
 */
export async function* askedBy(
  { permission, patterns }: { permission: string; patterns: readonly string[] },
  { directory, note }: { directory: string; note(text: string): void },
): AskSequence {
  if (permission === "list") {
    const paths = patterns.map((path) => resolvePath(path, directory))
    yield { permission, patterns: paths, paths }
  } else if (permission === "webfetch") {
    yield* askedByWebfetch(patterns, note)
  } else {
    yield { permission, patterns: [...patterns] }
  }
}

async function* askedByWebfetch(patterns: readonly string[], note: (text: string) => void): AskSequence {
  const { parseUrl } = await import("../tools/web/fetch-page.ts")
  const { resolveHost } = await import("../tools/web/resolve-host.ts")
  const addresses = patterns.map((text) => ({ text, url: plainAddress(text, parseUrl) }))
  yield { permission: "webfetch", patterns: addresses.map(({ text, url }) => url?.href ?? text) }
  const hosts = new Map(addresses.flatMap(({ url }) => (url ? [[url.host, url] as const] : [])))
  for (const url of hosts.values()) {
    try {
      const { host, inside } = await resolveHost(url, AbortSignal.timeout(lookupMs))
      if (inside.length > 0) yield { permission: "private_network", patterns: [host] }
    } catch (error) {
      note(`whether ${url.host} is of a private network cannot be told here: ${errorMessage(error)}`)
    }
  }
}

/** Undefined for a pattern of rules, and for what `webfetch` does not take. */
function plainAddress(text: string, parse: (text: string) => URL): URL | undefined {
  if (text.includes("*") || !URL.canParse(text)) return undefined
  try {
    return parse(text)
  } catch {
    return undefined
  }
}
