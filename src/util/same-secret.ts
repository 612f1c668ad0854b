import { createHash, timingSafeEqual } from "node:crypto"

/** Takes as long for a secret that is nearly right as for any other. */
export function isSameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest()
  return timingSafeEqual(digest(given), digest(expected))
}
