import type { LookupAddress } from "node:dns"
import { lookup } from "node:dns/promises"
import { isIP } from "node:net"
import { abortedError, orAbort } from "../../util/abort.ts"
import { systemCode } from "../../util/errors.ts"
import { isPrivateAddress } from "./private-address.ts"
import { WebfetchError } from "./webfetch-error.ts"

/** The host of an address, and where it leads. */
export interface ResolvedHost {
  /** As `private_network` is asked for it: without the brackets of an IPv6 address. */
  host: string
  addresses: LookupAddress[]
  /** Those that are not of the public internet. With any at all, leave is asked before the host is reached. */
  inside: string[]
}

/** Looks the host's name up. Throws {@link WebfetchError} for one that cannot be resolved, and the signal's reason. */
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
    const what = systemCode(error) === "ENOTFOUND" ? "the host does not exist" : "its name cannot be resolved"
    throw new WebfetchError("network", `Cannot reach ${host}: ${what}. Check the URL.`, error)
  }
}
