/** Names by which a program on this machine calls it, as they stand in a URL. */
export const loopbackHosts: readonly string[] = ["127.0.0.1", "localhost", "[::1]"]

/** True for an address to listen on that only this machine reaches. */
export function isLoopback(address: string): boolean {
  return loopbackHosts.includes(hostInUrl(address))
}

/** An address as it stands in a URL: one of IPv6 has brackets there. */
export function hostInUrl(address: string): string {
  return address.includes(":") ? `[${address}]` : address
}
