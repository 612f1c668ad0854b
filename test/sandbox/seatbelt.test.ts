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
    '(allow file-read* file-write* (subpath "/w"))',
    ...readOnly("/w/.git"),
    ...readOnly('/w/a\\"b\\\\'),
    ...readOnly("/w/open"),
    '(allow file-read* file-write* (subpath "/w/open/in"))',
    '(deny file-read* file-write* (subpath "/w/open/in/key"))',
  ])
})

test("what is shown in a hidden directory is opened after it, for reading", () => {
  const shown = { ...bounds, hidden: ["/w/data"], shown: ["/w/data/out"], readOnly: ["/w/data/other"] }
  expect(lines(seatbeltProfile(shown)).filter((line) => line.includes("/w/data"))).toEqual([
    '(deny file-read* file-write* (subpath "/w/data"))',
    ...readOnly("/w/data/out"),
  ])
})

function readOnly(path: string): string[] {
  return [`(allow file-read* (subpath "${path}"))`, `(deny file-write* (subpath "${path}"))`]
}

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
