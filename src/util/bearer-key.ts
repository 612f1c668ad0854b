import { createHash, timingSafeEqual } from "node:crypto"

/**
 * True where a header `Authorization` holds the key, as `Bearer`. Takes as long for one that is nearly right as for any
 * other.
 */
export function holdsKey(authorization: string | null | undefined, key: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(authorization ?? ""), digest(`Bearer ${key}`))
}
