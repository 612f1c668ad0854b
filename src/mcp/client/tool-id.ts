import { createHash } from "node:crypto"

/** As long as providers take. */
const longestID = 64

/**
 * The id under which a server's tool is offered and ruled: `<server>_<tool>`, every other character than letters,
 * digits, `_` and `-` as `_`. Longer ones are cut and end in a hash of the whole, so that two do not become one.
 */
export function mcpToolID(server: string, tool: string): string {
  const id = `${server}_${tool}`.replaceAll(/[^A-Za-z0-9_-]/g, "_")
  if (id.length <= longestID) return id
  const hash = createHash("sha256").update(`${server}\n${tool}`).digest("hex").slice(0, 8)
  return `${id.slice(0, longestID - hash.length - 1)}_${hash}`
}
