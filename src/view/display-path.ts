/**
 * Formats an absolute, normalized path for display: relative if it is inside `root`. Only compares strings, because a
 * browser has no access to the files.
 */
export function displayPath(path: string, root: string): string {
  if (path === root) return "."
  const prefix = root.endsWith("/") ? root : `${root}/`
  return path.startsWith(prefix) && !path.includes("/../") ? path.slice(prefix.length) : path
}
