import { describe, expect, test } from "vitest"
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

describe("seatbeltProfile", () => {
  test("lists deeper paths later and quotes names", () => {
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

  test("opens shown paths for reading after their hidden directory", () => {
    const shown = { ...bounds, hidden: ["/w/data"], shown: ["/w/data/out"], readOnly: ["/w/data/other"] }
    expect(lines(seatbeltProfile(shown)).filter((line) => line.includes("/w/data"))).toEqual([
      '(deny file-read* file-write* (subpath "/w/data"))',
      ...readOnly("/w/data/out"),
    ])
  })

  function readOnly(path: string): string[] {
    return [`(allow file-read* (subpath "${path}"))`, `(deny file-write* (subpath "${path}"))`]
  }

  test("closes the network except the proxy port, and always closes Unix sockets", () => {
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
})
