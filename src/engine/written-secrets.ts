import type { Secret } from "../tool/secrets.ts"
import { isRecord } from "../util/json.ts"

/**
 * Returns the secrets in a section of the config, at any depth. The name of a secret is its location. A secret is a
 * value whose key looks like a credential, a token with a scheme (`Bearer …`), an argument (`--api-key=…`, `--api-key
 * …`), or a password in an address. All other values are settings. Settings are not hidden, because hiding values such
 * as `production` or `application/json` would garble every result.
 */
export function writtenSecrets(name: string, value: unknown): Secret[] {
  if (typeof value === "string") return secretsInText(name, value)
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => {
      const before: unknown = value[index - 1]
      const follows = typeof before === "string" && /^-[^\s=]+$/.test(before) && namesCredential(before)
      if (!follows || typeof item !== "string") return writtenSecrets(name, item)
      return [{ name: `${name} ${before}`, value: item }]
    })
  }
  if (!isRecord(value)) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const path = `${name}.${key}`
    const isCredential = typeof inner === "string" && namesCredential(key)
    return isCredential ? [{ name: path, value: withoutScheme(inner) }] : writtenSecrets(path, inner)
  })
}

/**
 * Returns true if the name of a key, header or variable looks like a credential, but not like the location of a
 * credential.
 */
export function namesCredential(name: string): boolean {
  return credential.test(name) && !place.test(name)
}

const place = /(?:file|path|dir|directory|env|url|uri)$/i

const credential =
  /key|token|secret|passw|passphrase|pwd|credential|authorization|cookie|(?:^|[-_.])(?:auth|pass|pat|jwt|signature)$/i

const credentialArgument = /^-{0,2}([\w-]+)\s*[=:]\s*(\S.*)$/s
const scheme = /^(?:bearer|basic|token)\s+/i

/** Returns the secrets in a value whose key does not look like a credential. */
function secretsInText(name: string, text: string): Secret[] {
  if (scheme.test(text)) return [{ name, value: withoutScheme(text) }]
  const [, argument = "", value = ""] = credentialArgument.exec(text) ?? []
  if (namesCredential(argument)) return [{ name: `${name} ${argument}`, value: withoutScheme(value) }]
  return secretsOfAddress(name, text)
}

/** Removes the scheme, because only the token is secret and it may occur elsewhere without the scheme. */
function withoutScheme(text: string): string {
  return text.replace(scheme, "")
}

/** Returns the secrets in an address, each in encoded and decoded form. */
function secretsOfAddress(name: string, text: string): Secret[] {
  if (!text.includes("://") || !URL.canParse(text)) return []
  const { password, searchParams } = new URL(text)
  const passwords = password === "" ? [] : [password, decoded(password)]
  const parameters = [...searchParams].filter(([key]) => namesCredential(key))
  return [
    ...passwords.map((value) => ({ name: `${name} password`, value })),
    ...parameters.flatMap(([key, value]) =>
      [value, encodeURIComponent(value)].map((spelling) => ({ name: `${name} ${key}`, value: spelling })),
    ),
  ]
}

/** Decodes percent-encoding. Returns invalid text unchanged, because passwords often contain a plain `%`. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
