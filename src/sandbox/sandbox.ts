import { accessSync, constants, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import { within } from "../util/abort.ts"
import { errorMessage, TackleError } from "../util/errors.ts"
import { isInside, realPath } from "../util/paths.ts"
import { type ProcessOptions, type RunningProcess, startProcess } from "../util/process.ts"
import type { Bounds, Command, ConfinedCommand, HostFilter } from "./bounds.ts"
import { type Bubblewrap, underBubblewrap } from "./bubblewrap.ts"
import { scrubEnvironment } from "./environment.ts"
import type { HostProxy, Relay } from "./host-proxy.ts"
import { noPlaceholderBook, type PlaceholderBook } from "./placeholder-book.ts"
import { createPlaceholders } from "./placeholders.ts"
import { proxyVariables } from "./proxy-variables.ts"
import { seatbeltProgram, underSeatbelt } from "./seatbelt.ts"
import { seccompFilter } from "./seccomp.ts"

/** `auto` uses a sandbox where one works, `require` refuses commands where none does, `off` uses none. */
export type SandboxMode = "auto" | "require" | "off"

/** Which program puts the bounds around a command: on Linux the first, on macOS the second. */
export type SandboxKind = "bubblewrap" | "seatbelt"

/** Whether there is a sandbox here; if not, why, and what would help. `lacks`: what it cannot do, and what would help. */
export type SandboxState =
  | { works: true; kind: SandboxKind; lacks?: string }
  | { works: false; reason: string }

/** Puts bounds around commands. One for each engine. */
export interface Sandbox {
  readonly mode: SandboxMode
  /** False where the means are missing or it is switched off. True does not yet say that it works: see `state`. */
  readonly present: boolean
  /** Tried once, with a real command; later calls cost nothing. */
  state(): Promise<SandboxState>
  /** Throws {@link SandboxError} where no sandbox works. */
  wrap(command: Command, bounds: Bounds): Promise<ConfinedCommand>
  /** Ends what was started for commands. Those that still run lose their way to the network. */
  close(): Promise<void>
}

/** A command needs a sandbox, and there is none. */
export class SandboxError extends TackleError {
  constructor(reason: string) {
    super(
      `The command was not run: it has to run in a sandbox, and none works here. ${reason} ` +
        "`tackle doctor` shows what is missing. Go on without commands, or say what is missing.",
      { code: "sandbox.unavailable", recoverable: true },
    )
  }
}

/** What decides whether there is one. */
export interface SandboxOptions {
  mode: SandboxMode
  platform: NodeJS.Platform
  architecture: string
  /** Where programs are looked for. Those inside the worktree are never taken. */
  searchPath: string
  worktree: string
  /** Variables that commands keep though they are named like credentials. */
  passEnvironment?: readonly string[]
  /** Where the directories are written down that stand in the worktree while a command runs. Absent: nowhere. */
  placeholders?: PlaceholderBook
}

/** Port of the relay inside: each command has a loopback of its own. */
const relayPort = 3128

/** Longest wait for the trial, in milliseconds. */
const trialMs = 5_000

/** Looks for the means at once, and tries them with the first command. */
export function openSandbox(options: SandboxOptions): Sandbox {
  const { mode } = options
  const placeholders = createPlaceholders(options.placeholders ?? noPlaceholderBook)
  const means = mode === "off" ? { fault: 'It is switched off ("sandbox": "off").' } : findMeans(options)
  const proxies = new Map<string, Promise<HostProxy>>()
  let tried: Promise<SandboxState> | undefined
  let directory: string | undefined

  async function tryOut(): Promise<SandboxState> {
    if ("fault" in means) return { works: false, reason: means.fault }
    try {
      const confined = await confine({ argv: ["/bin/sh", "-c", ":"], env: {}, cwd: "/" }, nothing)
      await runOnce(confined)
      if (means.kind === "seatbelt" || means.socat !== undefined) return { works: true, kind: means.kind }
      return { works: true, kind: means.kind, lacks: "single hosts stay closed without socat: install it" }
    } catch (error) {
      return {
        works: false,
        reason: `${means.kind} is there but does not work: ${errorMessage(error).trim()}`,
      }
    }
  }

  async function confine(command: Command, bounds: Bounds): Promise<ConfinedCommand> {
    if ("fault" in means) throw new SandboxError(means.fault)
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
    const socket = options.platform === "darwin" ? undefined : join(ownDirectory(), `${proxies.size}.sock`)
    // Node's HTTP is loaded where a host is open, and nowhere else.
    const proxy = import("./host-proxy.ts").then(({ startHostProxy }) => startHostProxy(filter, socket))
    proxies.set(filter.key, proxy)
    return proxy
  }

  function ownDirectory(): string {
    directory ??= mkdtempSync(join(tmpdir(), "tackle-sandbox-"))
    return directory
  }

  return {
    mode,
    present: !("fault" in means),
    state() {
      tried ??= tryOut()
      return tried
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
  | { fault: string }
  | { kind: "seatbelt" }
  | ({ kind: "bubblewrap"; socat: string | undefined } & Pick<Bubblewrap, "program" | "filter">)

function findMeans(options: SandboxOptions): Means {
  const { platform, architecture } = options
  if (platform === "darwin") {
    return isProgram(seatbeltProgram) ? { kind: "seatbelt" } : { fault: `There is no ${seatbeltProgram}.` }
  }
  if (platform !== "linux") return { fault: `There is none for ${platform}; on Windows use WSL.` }
  const filter = seccompFilter(architecture)
  if (!filter) return { fault: `There is none for Linux on ${architecture} processors.` }
  const program = findProgram("bwrap", options)
  if (program === undefined) {
    return {
      fault: "bubblewrap is not installed: apt-get install bubblewrap, dnf install bubblewrap, or alike.",
    }
  }
  return { kind: "bubblewrap", program, filter, socat: findProgram("socat", options) }
}

function findProgram(name: string, { searchPath, worktree }: SandboxOptions): string | undefined {
  return searchPath
    .split(delimiter)
    .filter((directory) => isAbsolute(directory))
    .map((directory) => join(directory, name))
    .find((path) => isProgram(path) && !isInside(realPath(path), realPath(worktree)))
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    // Not there or not ours to run: the same to whoever looks for a program.
    return false
  }
}

/** Throws with what the program said where it fails. */
async function runOnce(command: ConfinedCommand): Promise<void> {
  let said = ""
  const process = await startConfined(command, (bytes) => {
    said += Buffer.from(bytes).toString()
  })
  try {
    const exit = await within(process.exited, trialMs)
    if (exit?.code !== 0) throw new Error(said || "it does not start a command")
  } finally {
    await process.kill()
    command.ended()
  }
}

/** Starts a confined command. Throws what {@link startProcess} throws. */
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
