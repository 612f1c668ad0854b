import type { Bounds, Command, ConfinedCommand } from "./bounds.ts"
import { type Placement, placements } from "./placements.ts"

/** Part of every macOS. */
export const seatbeltProgram = "/usr/bin/sandbox-exec"

/**
 * The command under macOS' Seatbelt. Its rules go by name and not by what exists, so that nothing has to stand in for a
 * path that is not there. `proxyPort`: where the proxy listens while some hosts are open.
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

/** The rules in Seatbelt's language. The last that matches holds. */
export function seatbeltProfile(bounds: Bounds, proxyPort?: number): string {
  return [
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))',
    '(allow file-write* (regex #"^/dev/fd/") (regex #"^/dev/ttys") (literal "/dev/ptmx"))',
    // Deeper paths later, as with mounts: they are the more special word.
    ...placements(bounds).flatMap(({ path, kind }) =>
      rules[kind].map((rule) => `(${rule} (subpath ${quote(path)}))`),
    ),
    ...network(bounds, proxyPort),
    // What runs elsewhere and acts for whoever asks it.
    "(deny appleevent-send)",
    "(deny process-info* (target others))",
    "(deny signal (target others))",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
  ].join("\n")
}

const rules: Readonly<Record<Placement["kind"], readonly string[]>> = {
  writable: ["allow file-read* file-write*"],
  readOnly: ["allow file-read*", "deny file-write*"],
  hidden: ["deny file-read* file-write*"],
}

function network({ network: allowed }: Bounds, proxyPort: number | undefined): string[] {
  if (allowed === "open") return ["(deny network-outbound (remote unix-socket))"]
  return [
    "(deny network*)",
    '(allow network-bind network-inbound (local ip "localhost:*"))',
    // The loopback belongs to the whole machine here.
    ...(proxyPort === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${proxyPort}"))`]),
  ]
}

function quote(path: string): string {
  return `"${path.replaceAll(/["\\]/g, "\\$&")}"`
}
