import { type BoundPath, type Bounds, type Command, type ConfinedCommand, orderedPaths } from "./bounds.ts"

/** Path of Seatbelt's program, which every macOS version includes. */
export const seatbeltProgram = "/usr/bin/sandbox-exec"

/**
 * Returns the command wrapped in Seatbelt on macOS. Seatbelt rules match paths, so nonexistent paths need no
 * placeholders.
 */
export function underSeatbelt(
  command: Command,
  bounds: Bounds,
  proxy?: { port: number; environment: Readonly<Record<string, string>> },
): ConfinedCommand {
  return {
    argv: [seatbeltProgram, "-p", seatbeltProfile(bounds, proxy?.port), ...command.argv],
    env: proxy ? { ...command.env, ...proxy.environment } : command.env,
    cwd: command.cwd,
    descriptors: [],
    holdsOutput: false,
    started: () => {},
    ended: () => {},
  }
}

/** Returns the profile in Seatbelt's language. The last matching rule applies. */
export function seatbeltProfile(bounds: Bounds, proxyPort?: number): string {
  return [
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))',
    '(allow file-write* (regex #"^/dev/fd/") (regex #"^/dev/ttys") (literal "/dev/ptmx"))',
    // Rules for deeper paths come later, so they take precedence.
    ...orderedPaths(bounds).flatMap(({ path, kind }) =>
      rules[kind].map((rule) => `(${rule} (subpath ${quote(path)}))`),
    ),
    ...network(bounds, proxyPort),
    // Without these rules, the command could make programs outside the sandbox act on its behalf.
    "(deny appleevent-send)",
    "(deny process-info* (target others))",
    "(deny signal (target others))",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
  ].join("\n")
}

const rules: Readonly<Record<BoundPath["kind"], readonly string[]>> = {
  writable: ["allow file-read* file-write*"],
  readOnly: ["allow file-read*", "deny file-write*"],
  hidden: ["deny file-read* file-write*"],
}

function network({ network: allowed }: Bounds, proxyPort: number | undefined): string[] {
  if (allowed === "open") return ["(deny network-outbound (remote unix-socket))"]
  return [
    "(deny network*)",
    '(allow network-bind network-inbound (local ip "localhost:*"))',
    // On macOS, the whole machine shares one loopback.
    ...(proxyPort === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${proxyPort}"))`]),
  ]
}

function quote(path: string): string {
  return `"${path.replaceAll(/["\\]/g, "\\$&")}"`
}
