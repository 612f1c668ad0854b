/** What programs say when they meet the bounds of a sandbox, in the words of the system and of common programs. */
const signs: readonly { bound: string; sign: RegExp }[] = [
  {
    bound: "no network access",
    sign: /could not resolve|name resolution|name or service not known|nodename nor servname|unknown host|no such host|EAI_AGAIN|ENOTFOUND|ENETUNREACH|network is (?:unreachable|down)|connection refused|ECONNREFUSED|blocked-by-rule|failed to (?:connect|fetch|download)|(?:temporary|dns) failure/i,
  },
  {
    bound: "only the project and temporary files are writable, except protected files",
    sign: /read-only file system|EROFS|resource busy|EBUSY/i,
  },
  {
    bound: "no access to secrets, sockets and other processes",
    sign: /operation not permitted|EPERM|permission denied|EACCES|^bwrap: /im,
  },
]

/**
 * What to tell the model of a sandboxed command that failed: which bounds may be the reason, going by what it said, and
 * how to ask for more. Undefined where nothing points to the sandbox.
 */
export function sandboxNote(failure: { output: string }): string | undefined {
  const met = signs.filter(({ sign }) => sign.test(failure.output)).map(({ bound }) => bound)
  if (met.length === 0) return undefined
  return `the sandbox may be the cause: ${met.join("; ")}. To run it outside the sandbox, call again with outside: true; the user is asked`
}
