import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto"
import { expect, test } from "vitest"
import { authenticateByKey } from "../../../src/mcp/client/oauth/key-pair.ts"

const issuer = "https://auth.example.com"
const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString()
const decode = (part = "") => JSON.parse(Buffer.from(part, "base64url").toString())

async function assertionBy(privateKey: string): Promise<string[]> {
  const params = new URLSearchParams()
  await authenticateByKey({ clientId: "us", privateKey })(new Headers(), params, "https://x.example.com", {
    issuer,
  } as never)
  expect(params.get("client_assertion_type")).toContain("jwt-bearer")
  expect(params.toString()).not.toContain("PRIVATE")
  return (params.get("client_assertion") ?? "").split(".")
}

const kinds = [
  ["RS256", "sha256", generateKeyPairSync("rsa", { modulusLength: 2048 })],
  ["ES256", "sha256", generateKeyPairSync("ec", { namedCurve: "P-256" })],
  ["ES384", "sha384", generateKeyPairSync("ec", { namedCurve: "P-384" })],
  ["EdDSA", undefined, generateKeyPairSync("ed25519")],
] as const

test.each(kinds)("signs an assertion with %s, for one server and two minutes", async (alg, hash, pair) => {
  const [header, claims, signature = ""] = await assertionBy(pem(pair.privateKey))
  expect(decode(header)).toEqual({ alg, typ: "JWT" })
  const { iat, exp, ...said } = decode(claims)
  expect(said).toEqual({ iss: "us", sub: "us", aud: issuer, jti: expect.any(String) })
  expect(exp - iat).toBe(120)
  const key = createPublicKey(pair.publicKey.export({ type: "spki", format: "pem" }))
  const signed = Buffer.from(`${header}.${claims}`)
  const options = { key, dsaEncoding: "ieee-p1363" } as const
  expect(verify(hash, signed, options, Buffer.from(signature, "base64url"))).toBe(true)
})

test("rejects an invalid or unsupported key without showing it", () => {
  expect(() => authenticateByKey({ clientId: "us", privateKey: "hush" })).toThrow(
    /expected a private key in PEM/,
  )
  const { privateKey } = generateKeyPairSync("x25519")
  expect(() => authenticateByKey({ clientId: "us", privateKey: pem(privateKey) })).toThrow(
    /^Unsupported "privateKey" \(x25519\)/,
  )
})
