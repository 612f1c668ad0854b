/**
 * A request that the gateway serves. `model` holds the encoded path segments of a model's id, and is empty for the list
 * of all models.
 */
export type Route =
  | { name: "chat" | "responses" | "messages" | "count-tokens" }
  | { name: "models"; model: string[] }

/**
 * Returns the route of a request, or undefined if the gateway does not serve the request. `url` is the request target.
 * The query is ignored. Segments are decoded once before they are matched. Returns undefined for a path with `.`, `..`,
 * an empty segment, or a character that does not occur in model ids, because the upstream could resolve it to a
 * different path.
 */
export function readRoute(method: string, url: string): Route | undefined {
  const [start, ...segments] = (url.split("?", 1)[0] ?? "").split("/").map(decodeSegment)
  if (start !== "" || !segments.every((segment) => segment !== undefined)) return undefined
  const [version, resource, ...rest] = segments
  if (version !== "v1") return undefined
  const name = method === "POST" ? posted.get(segments.slice(1).join(" ")) : undefined
  if (name !== undefined) return { name }
  if (method === "GET" && resource === "models" && rest.every(isModelSegment))
    return { name: "models", model: rest.map((segment) => segment.replaceAll("/", "%2F")) }
  return undefined
}

const posted = new Map([
  ["chat completions", "chat" as const],
  ["responses", "responses" as const],
  ["messages", "messages" as const],
  ["messages count_tokens", "count-tokens" as const],
])

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}

/**
 * Returns true if the segment can be part of a model's id. Clients may encode the slashes in an id, as in
 * `org%2Fmodel`.
 */
function isModelSegment(segment: string): boolean {
  return segment.split("/").every((part) => /^[\w.:@+~-]+$/.test(part) && !/^\.+$/.test(part))
}
