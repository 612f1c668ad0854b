import { closeSync, statSync, writeSync } from "node:fs"
import { realPath } from "../util/paths.ts"
import { openPipe } from "../util/pipe.ts"
import type { Bounds, Command, ConfinedCommand } from "./bounds.ts"
import type { Relay } from "./host-proxy.ts"
import type { Placeholders } from "./placeholders.ts"
import { placements } from "./placements.ts"

/** What bubblewrap needs beside the command. */
export interface Bubblewrap {
  /** The program, absolute. */
  program: string
  /** See `seccompFilter`. */
  filter: Buffer
  placeholders: Placeholders
  /** The way to the proxy, where some hosts are open. */
  relay?: Relay | undefined
}

/**
 * The command under bubblewrap: a new view of the file system, new process numbers with a `/proc` of their own, no
 * capabilities, no network but its own loopback where that is closed, and the filter for system calls.
 *
 * bubblewrap itself ends with the command, with its exit code; what the command left running goes on below the first
 * process of the new numbers, which stays in the process group and ends when nothing is left. Killing that one ends
 * everything inside. `--die-with-parent` would end jobs with the shell that started them, so it is not used.
 */
export async function underBubblewrap(
  command: Command,
  bounds: Bounds,
  { program, filter, placeholders, relay }: Bubblewrap,
): Promise<ConfinedCommand> {
  const release = placeholders.hold(bounds)
  try {
    const pipe = await filledPipe(filter)
    const sharesNetwork = bounds.network === "open" || relay !== undefined
    const inner = [program, ...namespaces(sharesNetwork), ...mounts(bounds)] as const
    const rest = ["--seccomp", "3", "--", ...command.argv]
    return {
      argv: relay ? besideRelay(program, relay, [...inner, "--sync-fd", "4", ...rest]) : [...inner, ...rest],
      env: relay ? { ...command.env, ...relay.environment } : command.env,
      cwd: command.cwd,
      descriptors: [pipe],
      // The first process inside keeps it, and ends last.
      holdsOutput: true,
      started: () => closeSync(pipe),
      ended: release,
    }
  } catch (error) {
    release()
    throw error
  }
}

/** The reading end of a pipe with these bytes in it: bubblewrap takes the filter from a descriptor. */
async function filledPipe(bytes: Buffer): Promise<number> {
  const { read, write } = await openPipe()
  try {
    writeSync(write, bytes)
  } finally {
    closeSync(write)
  }
  return read
}

function namespaces(sharesNetwork: boolean): string[] {
  return [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    ...(sharesNetwork ? [] : ["--unshare-net"]),
    "--cap-drop",
    "ALL",
  ]
}

/**
 * Everything read-only, then the bounds from the outside in, since a later mount covers an earlier one. A hidden
 * directory is closed once what is shown in it has its place.
 */
function mounts(bounds: Bounds): string[] {
  const args = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
  const closed: string[] = []
  for (const { path, kind } of placements(withoutLinks(bounds))) {
    if (kind === "writable") args.push("--bind-try", path, path)
    else if (kind === "readOnly") args.push("--ro-bind-try", path, path)
    else {
      const found = statSync(path, { throwIfNoEntry: false })
      // What is not there has nothing to hide.
      if (found?.isDirectory()) {
        args.push("--tmpfs", path)
        closed.push("--remount-ro", path)
      } else if (found) args.push("--ro-bind", "/dev/null", path)
    }
  }
  return [...args, ...closed]
}

/**
 * A mount on a link is one on what it leads to, and while bubblewrap makes its mounts an absolute link leads nowhere: then
 * no command would start.
 */
function withoutLinks(bounds: Bounds): Bounds {
  const real = (paths: readonly string[]) => paths.map((path) => realPath(path))
  return { ...bounds, readOnly: real(bounds.readOnly), hidden: real(bounds.hidden) }
}

/**
 * A network of its own for both the sandbox and the relay, which listens on the loopback there. The relay stays outside
 * of the sandbox, whose filter refuses it the Unix socket of the proxy. The first process of the sandbox holds descriptor
 * 4 until nothing is left in it; then the relay ends too.
 */
function besideRelay(
  program: string,
  { argv, port }: Relay,
  sandbox: readonly string[],
): [string, ...string[]] {
  const script = [
    `"\${@:2:$1}" & relay=$!`,
    // It takes a moment to listen.
    `for try in {1..200}; do (: <>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && break; sleep 0.005; done`,
    'exec 4> >(exec 3<&-; cat >/dev/null; kill "$relay")',
    `"\${@:$1+2}"`,
  ].join("\n")
  // Of root the kernel wants CAP_SETFCAP to make a further user namespace; with anyone else bubblewrap takes none. The
  // sandbox drops it.
  const network = ["--unshare-user", "--unshare-net", "--cap-drop", "ALL"]
  if (process.getuid?.() === 0) network.push("--cap-add", "CAP_SETFCAP")
  const shell = ["--dev-bind", "/", "/", "--", "/bin/bash", "-c", script, "sandbox"]
  return [program, ...network, ...shell, String(argv.length), ...argv, ...sandbox]
}
