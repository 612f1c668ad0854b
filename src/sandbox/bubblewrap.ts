import { closeSync, statSync, writeSync } from "node:fs"
import { isInside, realPath } from "../util/paths.ts"
import { openPipe } from "../util/pipe.ts"
import { type Bounds, type Command, type ConfinedCommand, orderedPaths } from "./bounds.ts"
import type { Relay } from "./host-proxy.ts"
import type { Placeholders } from "./placeholders.ts"

/** Options for bubblewrap. */
export interface Bubblewrap {
  /** Absolute path of the bubblewrap program. */
  program: string
  /** System call filter. See `seccompFilter`. */
  filter: Buffer
  placeholders: Placeholders
  /** Relay to the proxy. Without it, a network that allows only some hosts is closed. */
  relay?: Relay
}

/**
 * Returns the command wrapped in bubblewrap, with a separate file system view, process IDs and read-only `/proc`, a system call
 * filter, and no capabilities. Unless the network is open, the command can reach only its own loopback.
 *
 * bubblewrap exits with the command's exit code. Background processes continue under the first process of the PID
 * namespace, and killing that process ends them. `--die-with-parent` is not used, because it would end background jobs
 * together with the shell that started them.
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
    const namespaces = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
    if (!sharesNetwork) namespaces.push("--unshare-net")
    const inner = [program, ...namespaces, ...mounts(bounds)] as const
    const rest = ["--seccomp", "3", "--", ...command.argv]
    return {
      argv: relay ? besideRelay(program, relay, [...inner, "--sync-fd", "4", ...rest]) : [...inner, ...rest],
      env: relay ? { ...command.env, ...relay.environment } : command.env,
      cwd: command.cwd,
      descriptors: [pipe],
      // The first process of the sandbox keeps the output open and ends last.
      holdsOutput: true,
      started: () => closeSync(pipe),
      ended: release,
    }
  } catch (error) {
    release()
    throw error
  }
}

/** Returns the read end of a pipe that contains the bytes. bubblewrap reads the filter from a file descriptor. */
async function filledPipe(bytes: Buffer): Promise<number> {
  const { read, write } = await openPipe()
  try {
    writeSync(write, bytes)
  } finally {
    closeSync(write)
  }
  return read
}

/**
 * Returns the mount arguments. They mount the whole file system read-only, then the bounds with outer directories
 * first, because a later mount covers an earlier one. Hidden directories and `/proc` become read-only last, after the
 * mounts inside them.
 */
function mounts(bounds: Bounds): string[] {
  const args = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
  const closed: string[] = []
  for (const { path, kind } of orderedPaths(withoutLinks(bounds))) {
    // The sandbox has its own `/proc` and `/dev`. A mount from outside would show the processes of the machine.
    if (kind !== "hidden" && (isInside(path, "/proc") || path === "/dev")) continue
    if (kind === "writable") args.push("--bind-try", path, path)
    else if (kind === "readOnly") args.push("--ro-bind-try", path, path)
    else {
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.isDirectory()) {
        args.push("--tmpfs", path)
        closed.push("--remount-ro", path)
      } else if (found) args.push("--ro-bind", "/dev/null", path)
    }
  }
  // For root, files below `/proc/sys` and most files of a process are writable, whatever its capabilities.
  return [...args, ...closed, "--remount-ro", "/proc"]
}

/**
 * Resolves symbolic links in the paths. bubblewrap cannot follow absolute links, because their targets do not exist yet
 * while bubblewrap creates the mounts.
 */
function withoutLinks(bounds: Bounds): Bounds {
  const real = (paths: readonly string[]) => paths.map((path) => realPath(path))
  return { ...bounds, readOnly: real(bounds.readOnly), hidden: real(bounds.hidden) }
}

/**
 * Returns the arguments that start the sandbox and the relay in a new network namespace. The relay listens on the
 * loopback of this namespace. It runs outside the sandbox, because the filter would refuse the proxy's Unix socket. The
 * first process of the sandbox holds descriptor 4 until all processes have ended, and then the relay ends too.
 */
function besideRelay(
  program: string,
  { argv, port }: Relay,
  sandbox: readonly string[],
): [string, ...string[]] {
  const script = [
    `"\${@:2:$1}" & relay=$!`,
    // Wait until the relay listens.
    `for try in {1..200}; do (: <>/dev/tcp/127.0.0.1/${port}) 2>/dev/null && break; sleep 0.005; done`,
    'exec 4> >(exec 3<&-; cat >/dev/null; kill "$relay")',
    `"\${@:$1+2}"`,
  ].join("\n")
  // If Tackle runs as root, the kernel requires CAP_SETFCAP to create another user namespace. The sandbox drops this
  // capability.
  const network = ["--unshare-user", "--unshare-net", "--cap-drop", "ALL"]
  if (process.getuid?.() === 0) network.push("--cap-add", "CAP_SETFCAP")
  const shell = ["--dev-bind", "/", "/", "--", "/bin/bash", "-c", script, "sandbox"]
  return [program, ...network, ...shell, String(argv.length), ...argv, ...sandbox]
}
