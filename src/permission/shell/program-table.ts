import { basename } from "node:path"
import { readArguments } from "./arguments.ts"
import type { Program, ProgramTable } from "./program.ts"
import { buildTools, formatters } from "./programs/build-tools.ts"
import { builtins } from "./programs/builtins.ts"
import { filePrograms, systemPrograms } from "./programs/files.ts"
import { gitPrograms } from "./programs/git.ts"
import { interpreters } from "./programs/interpreters.ts"
import { networkPrograms } from "./programs/network.ts"
import { textPrograms } from "./programs/text.ts"
import { wrappers } from "./programs/wrappers.ts"
import type { Word } from "./words.ts"

/** Returns the entry for a program. A GNU program is also found by its name with the prefix `g`. */
export function findProgram(name: string): Program | undefined {
  return programs.get(name) ?? programs.get(gnuName(name))
}

/**
 * Returns the entry for a program that may have a version in its name, such as `python3.11`. Use the result only to
 * make a verdict stricter, because another program can have a similar name.
 */
export function findVersioned(name: string): Program | undefined {
  return findProgram(name) ?? findProgram(namesWithoutVersion(name)[0] ?? "")
}

/**
 * For a name that is not in the table, returns the names in the table that remain if its version is omitted: `python3`
 * and `python` for `python3.11`.
 */
export function namesWithoutVersion(name: string): string[] {
  const names: string[] = []
  for (let rest = name; !findProgram(rest) || names.length > 0; ) {
    const shorter = rest.replace(versionSuffix, "")
    if (shorter === rest || shorter === "") break
    rest = shorter
    if (findProgram(rest)) names.push(rest)
  }
  return names
}

/** Matches the end of a program name if it is part of a version, a build variant or an architecture. */
const versionSuffix =
  /(?:[-._]?(?:alpha|beta|rc|v)?\d+[a-z]{0,2}|[-._](?:exe|static|dbg|debug|preview|stable|nightly|basic|tiny|nox|gtk3?|athena|cli|(?:x86_64|amd64|aarch64|arm64|i[3-6]86)[\w-]*))$/i

/**
 * Subcommands of any program for which "always" remembers the whole command, because they usually write settings or run
 * a command or code.
 */
export const usuallyExact: ReadonlySet<string> = new Set(
  "alias auth config configure console credential credentials dlx eval exec extension extensions plugin plugins repl settings shell tool trust".split(
    " ",
  ),
)

/** Returns true for a program that builds, tests or installs the project. Such a program can run the project's code. */
export function isBuildTool(name: string): boolean {
  return buildToolNames.has(name)
}

/** Returns true for a program that rewrites source files. */
export function isFormatter(name: string): boolean {
  return formatterNames.has(name)
}

/**
 * Returns the name of a GNU program without the prefix `g` that it has on macOS and BSD. Returns other names unchanged.
 */
export function gnuName(name: string): string {
  return gnuNames.has(name) ? name.slice(1) : name
}

/** Returns the entry for a subcommand and the number of words that name it, or undefined if it is not in the table. */
export function findSubcommand(
  program: Pick<Program, "subcommands">,
  words: readonly { text: string }[],
): { program: Program; words: number } | undefined {
  for (const count of [2, 1]) {
    const name = words
      .slice(0, count)
      .map(({ text }) => text)
      .join(" ")
    const found =
      program.subcommands && Object.hasOwn(program.subcommands, name) ? program.subcommands[name] : undefined
    if (found && words.length >= count) return { program: found, words: count }
  }
  return undefined
}

/**
 * All tables. Each program has only one entry, because a later entry for the same program would replace an earlier
 * entry.
 */
export const allPrograms: ProgramTable = [
  ...filePrograms,
  ...textPrograms,
  ...gitPrograms,
  ...networkPrograms,
  ...interpreters,
  ...buildTools,
  ...formatters,
  ...systemPrograms,
  ...wrappers,
  ...builtins,
]

const programs: ReadonlyMap<string, Program> = new Map(
  allPrograms.flatMap(([names, program]) => names.split(" ").map((name) => [name, program] as const)),
)

/** Returns true for a command of a known program that reaches another machine or a service outside the sandbox. */
export function needsNetwork([program, ...words]: readonly Word[]): boolean {
  const name = basename(program?.text ?? "")
  if (servicePrograms.has(name)) return true
  const git = name === "git" ? findProgram(name) : undefined
  const [subcommand] = git ? readArguments(words, git).operands : []
  return gitTransfers.has(subcommand?.text ?? "")
}

const servicePrograms: ReadonlySet<string> = new Set(
  `curl wget wget2 aria2c http https xh ssh scp sftp nc ncat netcat socat telnet ftp lftp ping dig nslookup host whois
  traceroute docker podman kubectl helm gh glab aws gcloud az terraform ansible`.split(/\s+/),
)
const gitTransfers: ReadonlySet<string> = new Set("clone fetch ls-remote pull push".split(" "))

const buildToolNames: ReadonlySet<string> = new Set(buildTools.flatMap(([names]) => names.split(" ")))
const formatterNames: ReadonlySet<string> = new Set(
  [...formatters, ...buildTools.filter(([, { rewrites }]) => rewrites !== undefined)].flatMap(([names]) =>
    names.split(" "),
  ),
)

const gnuNames: ReadonlySet<string> = new Set(
  [
    "env nohup nice stdbuf time timeout xargs find chroot kill install dd ln cp mv rm rmdir unlink shred truncate touch",
    "mkdir mkfifo mknod chmod chown chgrp tee sort shuf split csplit uniq date base64 base32 basenc cat head tail sed awk",
    "tar sync tac od nl cut paste",
  ].flatMap((names) => names.split(" ").map((name) => `g${name}`)),
)
