/**
 * What is asked for a file: the path as it was named and, where links lead elsewhere, the one that will be opened. The
 * engine follows links too, but at a moment of its own: both have to be allowed.
 */
export function pinnedPatterns(path: string, real: string): string[] {
  return real === path ? [path] : [path, real]
}
