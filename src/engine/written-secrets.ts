import type { Secret } from "../tool/secrets.ts"
import { isRecord } from "../util/json.ts"

/**
 * The secrets in a part of the config, at any depth, named by where they stand: texts whose key is named like a
 * credential, tokens behind a scheme (`Bearer …`), arguments (`--api-key=…`, `--api-key …`), and the password and
 * such parameters of an address. A text that is none of these is taken for a setting: `production` or
 * `application/json` hidden wherever it stands would spoil every result.
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

/** Whether a key, header or variable is named like something that gives access, and not like the place of such a thing. */
export function namesCredential(name: string): boolean {
  return credential.test(name) && !place.test(name)
}

const place = /(?:file|path|dir|directory|env|url|uri)$/i

const credential =
  /key|token|secret|passw|passphrase|pwd|credential|authorization|cookie|(?:^|[-_.])(?:auth|pass|pat|jwt|signature)$/i

const credentialArgument = /^-{0,2}([\w-]+)\s*[=:]\s*(\S.*)$/s
const scheme = /^(?:bearer|basic|token)\s+/i

/** What is secret in a text whose key says nothing. */
function secretsInText(name: string, text: string): Secret[] {
  if (scheme.test(text)) return [{ name, value: withoutScheme(text) }]
  const [, argument = "", value = ""] = credentialArgument.exec(text) ?? []
  if (namesCredential(argument)) return [{ name: `${name} ${argument}`, value: withoutScheme(value) }]
  return secretsOfAddress(name, text)
}

/** It is the token alone that is a secret, and it may stand elsewhere without its scheme. */
function withoutScheme(text: string): string {
  return text.replace(scheme, "")
}

/** Both as they are written in it and as they are meant. */
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

/** As it is where it is not encoded rightly: passwords with a `%` are often written so. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
