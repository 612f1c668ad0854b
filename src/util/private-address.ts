import { BlockList, isIPv4, isIPv6 } from "node:net"

/**
 * IPv4 ranges outside the public internet, from the IANA registry of special-purpose addresses: this host, private
 * networks, carrier networks, loopback, link-local (which includes cloud metadata services), documentation, benchmarks,
 * multicast and reserved ranges.
 */
const special4 = `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
  192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
  198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`

/** The public IPv6 range, and the special ranges within it. */
const public6 = "2000::/3"
const special6 = "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"

/** IPv6 ranges whose last 32 bits are an IPv4 address: mapped and translated (NAT64) addresses. */
const carriers6 = "::ffff:0:0/96 64:ff9b::/96"

/** Returns false only for addresses on the public internet. Unrecognized addresses count as private. */
export function isPrivateAddress(address: string): boolean {
  if (isIPv4(address)) return lists.special4.check(address, "ipv4")
  // In a link-local address, the zone follows a "%".
  if (!isIPv6(address) || address.includes("%")) return true
  const inside = carriedIPv4(address)
  if (inside !== undefined) return lists.special4.check(inside, "ipv4")
  return !lists.public6.check(address, "ipv6") || lists.special6.check(address, "ipv6")
}

const lists = {
  special4: listOf(special4, "ipv4"),
  public6: listOf(public6, "ipv6"),
  special6: listOf(special6, "ipv6"),
  carriers6: listOf(carriers6, "ipv6"),
}

function listOf(ranges: string, family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList()
  for (const range of ranges.split(/\s+/)) {
    const [net = "", prefix] = range.split("/")
    list.addSubnet(net, Number(prefix), family)
  }
  return list
}

function carriedIPv4(address: string): string | undefined {
  if (!lists.carriers6.check(address, "ipv6")) return undefined
  // `URL` normalizes IPv6 addresses to hexadecimal groups.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(":")
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || "0", 16))
  return [high >> 8, high & 255, low >> 8, low & 255].join(".")
}
