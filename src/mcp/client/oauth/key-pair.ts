import { createPrivateKey, type KeyObject, randomUUID, sign } from "node:crypto"
import type { OAuthClientProvider } from "@modelcontextprotocol/client"
import { UsageError } from "../../../util/errors.ts"

type AuthenticateClient = NonNullable<OAuthClientProvider["addClientAuthentication"]>

/** Lifetime of an assertion, in seconds. Allows for clock differences. */
const assertionSeconds = 120

/**
 * Returns a function that authenticates the client with its private key (`private_key_jwt`, RFC 7523). Each assertion
 * is signed for one server. Throws `UsageError` if the key is invalid or not supported.
 */
export function authenticateByKey({
  clientId,
  privateKey,
}: {
  clientId: string
  privateKey: string
}): AuthenticateClient {
  const { key, algorithm, hash } = readKey(privateKey)
  return (_headers, params, url, metadata) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = {
      iss: clientId,
      sub: clientId,
      aud: metadata?.issuer ?? String(url),
      jti: randomUUID(),
      iat: now,
      exp: now + assertionSeconds,
    }
    const signed = [{ alg: algorithm, typ: "JWT" }, claims].map(encode).join(".")
    const signature = sign(hash, Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" })
    params.set("client_id", clientId)
    params.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    params.set("client_assertion", `${signed}.${signature.toString("base64url")}`)
  }
}

interface SigningKey {
  key: KeyObject
  /** Algorithm name from RFC 7518. */
  algorithm: string
  /** Hash algorithm. Undefined if the key type implies it. */
  hash: string | undefined
}

/** Elliptic curves, keyed by Node's curve names. */
const curves: Record<string, Omit<SigningKey, "key">> = {
  prime256v1: { algorithm: "ES256", hash: "sha256" },
  secp384r1: { algorithm: "ES384", hash: "sha384" },
  secp521r1: { algorithm: "ES512", hash: "sha512" },
}

function readKey(text: string): SigningKey {
  const key = parseKey(text)
  const { namedCurve = "" } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === "rsa") return { key, algorithm: "RS256", hash: "sha256" }
  if (key.asymmetricKeyType === "ed25519") return { key, algorithm: "EdDSA", hash: undefined }
  const curve = key.asymmetricKeyType === "ec" ? curves[namedCurve] : undefined
  if (curve) return { key, ...curve }
  const kind = `${key.asymmetricKeyType} ${namedCurve}`.trim()
  throw new UsageError(`Unsupported "privateKey" (${kind}). Use RSA, P-256, P-384, P-521 or Ed25519.`)
}

function parseKey(text: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch (error) {
    throw new UsageError(
      'Invalid "privateKey": expected a private key in PEM format without a password, such as "{file:~/.secrets/tickets.pem}".',
      error,
    )
  }
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url")
}
