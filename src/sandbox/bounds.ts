/**
 * What a command may touch: the compiled policy as plain data. Paths are absolute and their links followed. Of two that
 * lie in each other the deeper one holds; of two equal ones the stricter.
 */
export interface Bounds {
  /** Directories whose content may be changed. Everything else may only be read. */
  writable: readonly string[]
  /** Files and directories that may not be changed, whatever they lie in. */
  readOnly: readonly string[]
  /** Files and directories that may not even be read. */
  hidden: readonly string[]
  /** What can be read although it lies in something hidden; changed only where it is among the writable ones too. */
  shown?: readonly string[]
  /** Directories that do not exist and are not to come into being. */
  absent: readonly string[]
  network: Network
}

/** `closed`: nothing but the command's own loopback. A filter opens the hosts it says yes to, through a proxy. */
export type Network = "closed" | "open" | HostFilter

/** Says host by host what of the network is open. */
export interface HostFilter {
  /** The same for filters that say the same to every host. */
  key: string
  /** True for a host that may be reached. Names in lower case, without a port or a dot at the end. */
  allows(host: string): boolean
}

/** A program that is about to be started. */
export interface Command {
  argv: readonly [string, ...string[]]
  env: Readonly<Record<string, string | undefined>>
  cwd: string
}

/** The same command with its bounds around it. */
export interface ConfinedCommand extends Command {
  /** Descriptors that the program inherits, as 3 and up. */
  descriptors: readonly number[]
  /** Its output stays open until nothing of it runs any more. */
  holdsOutput: boolean
  /** To be called once it was started, or could not be. */
  started(): void
  /** To be called when nothing of it runs any more. */
  ended(): void
}
