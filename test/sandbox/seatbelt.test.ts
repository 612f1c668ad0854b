import { expect, test } from "vitest"
import type { Bounds } from "../../src/sandbox/bounds.ts"
import { seatbeltProfile } from "../../src/sandbox/seatbelt.ts"

const bounds: Bounds = {
  writable: ["/w", "/w/open/in"],
  readOnly: ["/w/open", '/w/a"b\\'],
  hidden: ["/w/open/in/key"],
  absent: ["/w/.git"],
  network: "closed",
}

function lines(profile: string): string[] {
  return profile.split("\n")
}

test("deeper paths come later, since the last rule that matches holds; names are quoted", () => {
  const paths = lines(seatbeltProfile(bounds)).filter((line) => line.includes("subpath"))
  expect(paths).toEqual([
    '(allow file-write* (subpath "/w"))',
    '(deny file-write* (subpath "/w/.git"))',
    '(deny file-write* (subpath "/w/a\\"b\\\\"))',
    '(deny file-write* (subpath "/w/open"))',
    '(allow file-write* (subpath "/w/open/in"))',
    '(deny file-read* file-write* (subpath "/w/open/in/key"))',
  ])
})

test("the network is closed but for the proxy's port; open, it is all but Unix sockets", () => {
  const network = (profile: string) => lines(profile).filter((line) => /network/.test(line))
  expect(network(seatbeltProfile(bounds))[0]).toBe("(deny network*)")
  expect(network(seatbeltProfile(bounds)).join()).not.toContain("network-outbound")
  expect(network(seatbeltProfile(bounds, 81))).toContain(
    '(allow network-outbound (remote ip "localhost:81"))',
  )
  expect(network(seatbeltProfile({ ...bounds, network: "open" }))).toEqual([
    "(deny network-outbound (remote unix-socket))",
  ])
})
