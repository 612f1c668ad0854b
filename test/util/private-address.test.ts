import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { isPrivateAddress } from "../../src/util/private-address.ts"

describe("private:", () => {
  test.each(
    (
      "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 " +
      "192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 255.255.255.255 " +
      ":: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::1 " +
      "fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 4000::1 " +
      "localhost 127.1 01.2.3.4 nonsense"
    ).split(" "),
  )("%s", (address) => expect(isPrivateAddress(address)).toBe(true))
})

describe("public:", () => {
  test.each(
    (
      "1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.167.255.255 223.255.255.255 " +
      "2606:4700:4700::1111 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8"
    ).split(" "),
  )("%s", (address) => expect(isPrivateAddress(address)).toBe(false))
})

test("an IPv4 address and its IPv6 forms give the same result", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const verdict = isPrivateAddress(address)
      expect(isPrivateAddress(`::ffff:${address}`)).toBe(verdict)
      expect(isPrivateAddress(`64:ff9b::${address}`)).toBe(verdict)
    }),
  )
})
