/** What programs say when they meet the bounds of a sandbox, in the words of the system and of common programs. */
const signs: readonly { bound: string; sign: RegExp }[] = [
  {
    bound: "the network is closed",
    sign: /could not resolve|name resolution|name or service not known|nodename nor servname|unknown host|no such host|EAI_AGAIN|ENOTFOUND|ENETUNREACH|network is (?:unreachable|down)|connection refused|ECONNREFUSED|blocked-by-rule|failed to (?:connect|fetch|download)|(?:temporary|dns) failure/i,
  },
  {
    bound:
      "only the project and temporary files can be written, protected files of the project not even then",
    sign: /read-only file system|EROFS|resource busy|EBUSY/i,
  },
  {
    bound: "secrets, sockets and other processes are out of reach",
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
  return `it ran in a sandbox, which may be why it failed: ${met.join("; ")}. If it needs more, call again with outside: true; the person is asked`
}
