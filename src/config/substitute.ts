import { dirname, join, resolve } from "node:path"
import { errorMessage } from "../util/errors.ts"
import { describeProblem, type Position, type Problem } from "./errors.ts"
import type { ConfigNode } from "./node.ts"
import { readSmallFile, type SmallFile } from "./read.ts"

/** Reads a file that is put in, by its absolute path. Throws where it cannot be read; undefined: there is none. */
export type FileReader = (path: string) => SmallFile | undefined

/** Where what is put in comes from. */
export interface SubstitutionContext {
  /** Where relative paths of a config without a file start. Absolute. */
  directory: string
  /** What `~` stands for. Absolute. */
  home: string
  environment: Readonly<Record<string, string | undefined>>
  /** Default: from the disk, as it is now. */
  read?: FileReader
}

/** Who is told what went wrong. */
export interface Listener {
  warn(text: string): void
  fail(problem: Problem): void
}

const pattern = /\{(env|file):([^{}]+)\}/g

/**
 * Replaces `{env:NAME}` and `{file:path}` in every string value, once: what is put in is not looked at again. A
 * variable that is not set is empty, with a warning unless it is an `apiKey`; a file that cannot be read is empty too, and
 * a problem. File paths start at the config file; the white space around a file's text is dropped.
 */
export function substitute<T extends ConfigNode>(node: T, around: SubstitutionContext, listener: Listener): T
export function substitute(node: ConfigNode, around: SubstitutionContext, listener: Listener): ConfigNode {
  if (node.kind === "array") {
    return { ...node, items: node.items.map((item) => substitute(item, around, listener)) }
  }
  if (node.kind === "object") {
    const entries = node.entries.map((entry) => {
      // A key of a provider that is not used is no fault; one that is used says itself what it misses.
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
  const value = environment[name]
  if (value === undefined) {
    warn(describeProblem({ position, text: `the environment variable ${name} is not set; taken as empty.` }))
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
    fail({ position, text: `there is no file ${path}.` })
  } catch (error) {
    fail({ position, text: `${path} cannot be read: ${errorMessage(error)}.` })
  }
  return ""
}
