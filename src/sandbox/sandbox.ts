import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { within } from "../util/abort.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { findProgram } from "../util/find-program.ts"
import { realPath } from "../util/paths.ts"
import { type ProcessOptions, type RunningProcess, startProcess } from "../util/process.ts"
import type { Bounds, Command, ConfinedCommand, HostFilter } from "./bounds.ts"
import { type Bubblewrap, underBubblewrap } from "./bubblewrap.ts"
import type { HostProxy, Relay } from "./host-proxy.ts"
import { createPlaceholders, type PlaceholderJournal } from "./placeholders.ts"
import { seatbeltProgram, underSeatbelt } from "./seatbelt.ts"
import { seccompFilter } from "./seccomp.ts"

/**
 * Whether commands run in a sandbox. `auto` uses a sandbox if one works, `require` refuses commands if no sandbox
 * works, and `off` disables the sandbox.
 */
export type SandboxMode = "auto" | "require" | "off"

/** The program that confines commands: bubblewrap on Linux, Seatbelt on macOS. */
export type SandboxKind = "bubblewrap" | "seatbelt"

/** Whether the sandbox works. `limitation` and `reason` are messages for the user that include the remedy, if known. */
export type SandboxState =
  | { works: true; kind: SandboxKind; limitation?: string }
  | { works: false; reason: string }

/** Confines commands to bounds. Each engine has one sandbox. */
export interface Sandbox {
  readonly mode: SandboxMode
  /** True if the sandbox is enabled and its programs are installed. The sandbox may still not work: see `state`. */
  readonly present: boolean
  /** Tests the sandbox with a real command on the first call. Later calls return the same result. */
  state(): Promise<SandboxState>
  /** Returns the command confined to the bounds. Throws {@link SandboxError} if the sandbox does not work. */
  wrap(command: Command, bounds: Bounds): Promise<ConfinedCommand>
  /** Stops the proxies. Commands that are still running can no longer reach the allowed hosts. */
  close(): Promise<void>
}

/** Thrown when a command requires a sandbox, but no sandbox works. */
export class SandboxError extends TackleError {
  constructor(reason: string) {
    super(
      `The command was not run, because it requires a sandbox, but no sandbox works on this machine. ${reason} ` +
        "Continue without commands, or ask the user to run `tackle doctor`.",
      { code: "sandbox.unavailable", recoverable: true },
    )
  }
}

/** Options for {@link openSandbox}. */
export interface SandboxOptions {
  mode: SandboxMode
  platform: NodeJS.Platform
  architecture: string
  /** Value of `PATH`, used to find the sandbox programs. Programs inside the worktree are ignored. */
  searchPath: string
  worktree: string
  /** Variables that commands keep even if their names look like credentials. */
  passEnvironment?: readonly string[]
  /** Journal for the placeholder directories of running commands. By default, these directories are not recorded. */
  placeholders?: PlaceholderJournal
}

/** Port of the relay. Fixed, because each command has its own loopback. */
const relayPort = 3128

/** Time limit for the test command, in milliseconds. */
const testMs = 5_000

/** Opens a sandbox. Looks for the sandbox programs immediately, and tests them before the first command. */
export function openSandbox(options: SandboxOptions): Sandbox {
  const { mode } = options
  const placeholders = createPlaceholders(options.placeholders)
  const means =
    mode === "off" ? { problem: 'The sandbox is disabled ("sandbox": "off").' } : findMeans(options)
  const proxies = new Map<string, Promise<HostProxy>>()
  let tested: Promise<SandboxState> | undefined
  let directory: string | undefined

  async function test(): Promise<SandboxState> {
    if ("problem" in means) return { works: false, reason: means.problem }
    const { kind } = means
    try {
      await runOnce(await confine({ argv: ["/bin/sh", "-c", ":"], env: {}, cwd: "/" }, nothing))
    } catch (error) {
      return {
        works: false,
        reason: `${kind} is installed but does not work: ${errorMessage(error).trim().replace(/[^.]$/, "$&.")}`,
      }
    }
    const limited = kind === "bubblewrap" && means.socat === undefined
    return {
      works: true,
      kind,
      limitation: limited ? "install socat to allow network access to individual hosts" : undefined,
    }
  }

  async function confine(command: Command, bounds: Bounds): Promise<ConfinedCommand> {
    if ("problem" in means) throw new SandboxError(means.problem)
    const scrubbed = { ...command, env: scrubEnvironment(command.env, options.passEnvironment) }
    const filter = typeof bounds.network === "object" ? bounds.network : undefined
    if (means.kind === "seatbelt") {
      const address = filter && (await proxyFor(filter)).address
      if (typeof address !== "number") return underSeatbelt(scrubbed, bounds)
      return underSeatbelt(scrubbed, bounds, { port: address, environment: proxyVariables(address) })
    }
    const relay = filter && means.socat !== undefined ? await relayTo(filter, means.socat) : undefined
    const { program, filter: systemCalls } = means
    return underBubblewrap(scrubbed, bounds, { program, filter: systemCalls, placeholders, relay })
  }

  async function relayTo(filter: HostFilter, socat: string): Promise<Relay> {
    const { address } = await proxyFor(filter)
    const argv = [socat, `TCP-LISTEN:${relayPort},bind=127.0.0.1,fork,reuseaddr`, `UNIX-CONNECT:${address}`]
    return { argv, port: relayPort, environment: proxyVariables(relayPort) }
  }

  function proxyFor(filter: HostFilter): Promise<HostProxy> {
    const known = proxies.get(filter.key)
    if (known) return known
    directory ??= mkdtempSync(join(tmpdir(), "tackle-sandbox-"))
    const socket = options.platform === "darwin" ? undefined : join(directory, `${proxies.size}.sock`)
    // Loads Node's HTTP module only if some hosts are allowed.
    const proxy = import("./host-proxy.ts").then(({ startHostProxy }) => startHostProxy(filter, socket))
    proxies.set(filter.key, proxy)
    return proxy
  }

  return {
    mode,
    present: !("problem" in means),
    state() {
      tested ??= test()
      return tested
    },
    async wrap(command, bounds) {
      const state = await this.state()
      if (!state.works) throw new SandboxError(state.reason)
      return confine(command, bounds)
    },
    async close() {
      for (const proxy of proxies.values()) await (await proxy).close()
      proxies.clear()
      if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
    },
  }
}

const nothing: Bounds = { writable: [], readOnly: [], hidden: [], absent: [], network: "closed" }

type Means =
  | { problem: string }
  | { kind: "seatbelt" }
  | ({ kind: "bubblewrap"; socat: string | undefined } & Pick<Bubblewrap, "program" | "filter">)

function findMeans({ platform, architecture, searchPath, worktree }: SandboxOptions): Means {
  const find = (name: string) =>
    findProgram(name, { searchPath, worktree: realPath(worktree), trusted: false })
  if (platform === "darwin")
    return find(seatbeltProgram) ? { kind: "seatbelt" } : { problem: `${seatbeltProgram} does not exist.` }
  if (platform !== "linux") return { problem: `${platform} has no supported sandbox. On Windows, use WSL.` }
  const filter = seccompFilter(architecture)
  if (!filter) return { problem: `Linux on ${architecture} processors has no supported sandbox.` }
  const program = find("bwrap")
  if (program === undefined)
    return {
      problem: "bubblewrap is not installed. Install it, for example with `apt-get install bubblewrap`.",
    }
  return { kind: "bubblewrap", program, filter, socat: find("socat") }
}

/** Runs a command. If it fails, throws an error with its output. */
async function runOnce(command: ConfinedCommand): Promise<void> {
  let output = ""
  const process = await startConfined(command, (bytes) => {
    output += Buffer.from(bytes).toString()
  })
  try {
    const exit = await within(process.exited, testMs)
    if (exit?.code !== 0) throw new Error(output || "it cannot start a command")
  } finally {
    await process.kill()
    command.ended()
  }
}

/** Starts a confined command. Throws the errors of {@link startProcess} if the command cannot be started. */
export async function startConfined(
  command: ConfinedCommand,
  onOutput: (bytes: Uint8Array) => void,
  options: Pick<ProcessOptions, "input" | "record"> = {},
): Promise<RunningProcess> {
  try {
    return await startProcess({ ...command, ...options, onOutput })
  } finally {
    command.started()
  }
}

/**
 * Removes variables that give access outside the sandbox: sockets of agents and daemons, and credentials. Keeps the
 * variables in `passed`.
 */
function scrubEnvironment(
  environment: Command["env"],
  passed: readonly string[] = [],
): Record<string, string | undefined> {
  const isRemoved = (name: string) => socketVariables.has(name) || credential.test(name)
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => passed.includes(name) || !isRemoved(name)),
  )
}

const socketVariables: ReadonlySet<string> = new Set(
  `SSH_AUTH_SOCK SSH_AGENT_PID SSH_ASKPASS GPG_AGENT_INFO GNOME_KEYRING_CONTROL DBUS_SESSION_BUS_ADDRESS
  DBUS_SYSTEM_BUS_ADDRESS DOCKER_HOST CONTAINER_HOST XAUTHORITY WAYLAND_DISPLAY TMUX`.split(/\s+/),
)

const credential =
  /(?:(?:^|_)(?:TOKEN|SECRET|PASS|PASSWD|PASSPHRASE|APIKEY|KEY|CREDENTIALS?|DSN|CONNECTION_STRING|MYSQL_PWD)|PASSWORD|(?:^|_)(?:DATABASE|DB|POSTGRES|POSTGRESQL|PG|MYSQL|MARIADB|MONGO|MONGODB|REDIS|AMQP|RABBITMQ)_UR[IL])$/i

/**
 * Returns the environment variables that point programs to the proxy, in lowercase and uppercase. Connections to the
 * loopback bypass the proxy.
 */
function proxyVariables(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`
  const lower = { http_proxy: url, https_proxy: url, all_proxy: url, no_proxy: "localhost,127.0.0.1,::1" }
  const upper = Object.entries(lower).map(([name, value]) => [name.toUpperCase(), value])
  return { ...lower, ...Object.fromEntries(upper) }
}
