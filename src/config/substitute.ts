import { dirname, join, resolve } from "node:path"
import { errorMessage } from "../util/errors.ts"
import { own } from "../util/json.ts"
import { describeProblem, type Position, type Problem } from "./errors.ts"
import type { ConfigNode } from "./node.ts"
import { readSmallFile, type SmallFile } from "./small-file.ts"

/**
 * Reads an included file by its absolute path. Returns undefined if the file does not exist. Throws if the file cannot
 * be read.
 */
export type FileReader = (path: string) => SmallFile | undefined

/** The sources of substituted values. */
export interface SubstitutionContext {
  /** Absolute path of the directory that relative paths refer to if the config does not come from a file. */
  directory: string
  /** Absolute path that replaces `~`. */
  home: string
  environment: Readonly<Record<string, string | undefined>>
  /** Reads an included file. By default, reads it from disk. */
  read?: FileReader
}

/** Receives warnings and problems. */
export interface Listener {
  warn(text: string): void
  fail(problem: Problem): void
}

const pattern = /\{(env|file):([^{}]+)\}/g

/**
 * Replaces `{env:NAME}` and `{file:path}` in every string, without recursion. An unset variable is replaced with an
 * empty string and causes a warning, except in `apiKey`. `{env:NAME:-text}` is replaced with the text if the variable
 * is unset or empty. A file that cannot be read is replaced with an empty string and causes a problem. Paths are
 * relative to the config file. Trims the included text.
 */
export function substitute<T extends ConfigNode>(node: T, around: SubstitutionContext, listener: Listener): T
export function substitute(node: ConfigNode, around: SubstitutionContext, listener: Listener): ConfigNode {
  if (node.kind === "array") {
    return { ...node, items: node.items.map((item) => substitute(item, around, listener)) }
  }
  if (node.kind === "object") {
    const entries = node.entries.map((entry) => {
      // An unused provider needs no key. A provider that is used reports a missing key itself.
      const heard = entry.key === "apiKey" ? { ...listener, warn: () => {} } : listener
      return { ...entry, value: substitute(entry.value, around, heard) }
    })
    return { ...node, entries }
  }
  if (typeof node.value !== "string") return node
  const value = node.value.replace(pattern, (_, kind: string, name: string) =>
    kind === "env"
      ? variable(name, node.position, around, listener)
      : fileText(name, node.position, around, listener),
  )
  return { ...node, value }
}

function variable(
  name: string,
  position: Position,
  { environment }: SubstitutionContext,
  { warn }: Listener,
): string {
  const [given = "", ...otherwise] = name.split(":-")
  const value = own(environment, given)
  if (otherwise.length > 0) return value || otherwise.join(":-")
  if (value === undefined) {
    warn(
      describeProblem({
        position,
        text: `the environment variable ${name} is not set and is treated as empty.`,
      }),
    )
  }
  return value ?? ""
}

function fileText(
  name: string,
  position: Position,
  { directory, home, read = readSmallFile }: SubstitutionContext,
  { fail }: Listener,
): string {
  const path = name.startsWith("~/")
    ? join(home, name.slice(2))
    : resolve(directory, dirname(position.file), name)
  try {
    const file = read(path)
    if (file) return file.text.trim()
    fail({ position, text: `the file ${path} does not exist.` })
  } catch (error) {
    fail({ position, text: `${path} cannot be read: ${errorMessage(error)}.` })
  }
  return ""
}
