import { type TrustItem, trustPath } from "../permission/trust-items.ts"
import { errorMessage } from "../util/errors.ts"
import { type ConfigFile, configFiles } from "./config-files.ts"
import { ConfigError, type Problem } from "./errors.ts"
import type { ConfigSource } from "./layer.ts"
import type { Location } from "./location.ts"
import { trustKind } from "./project-trust-items.ts"
import { readSmallFile } from "./read.ts"

/** Tells which of a project's items the person has not trusted as they are now: `Trust.isTrusted` for its work tree. */
export type TrustCheck = (items: readonly TrustItem[]) => { changed: readonly TrustItem[] }

/** What was found, and what could not be read of it. */
export interface Sources {
  sources: ConfigSource[]
  problems: Problem[]
}

/** The name that stands for a file where the config came in a variable. */
export const contentName = "TACKLE_CONFIG_CONTENT"

/** Every text that holds config, in rising precedence, before anyone looked into it. None is judged yet. */
export function readSources(location: Location): Sources {
  const { sources, problems } = readFiles(configFiles(location))
  const text = location.environment[contentName]
  if (!text) return { sources, problems }
  const content = { path: contentName, kind: "tackle", scope: "env", text, hash: "", trusted: true } as const
  return { sources: [...sources, content], problems }
}

/** Those of the files that exist. */
export function readFiles(files: readonly ConfigFile[]): Sources {
  const found: Sources = { sources: [], problems: [] }
  for (const file of files) {
    try {
      found.sources.push(...readSource(file))
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      found.problems.push(...error.problems)
    }
  }
  return found
}

/** None where there is no such file. */
function readSource({ path, kind, scope, required }: ConfigFile): ConfigSource[] {
  const place = { file: path, line: 1, column: 1 }
  try {
    const file = readSmallFile(path)
    if (file) return [{ path, kind, scope, ...file, trusted: true }]
  } catch (error) {
    // It cannot be pinned either, so that it is told as not trusted.
    if (isForeignText({ path, kind })) return []
    throw new ConfigError([{ place, text: `the config file cannot be read: ${errorMessage(error)}.` }], error)
  }
  if (!required) return []
  throw new ConfigError([{ place, text: "TACKLE_CONFIG names this file, and there is none." }])
}

/** The sources with what the person trusts of them. Agents and commands of a project that are not trusted are left out. */
export async function withTrust(
  sources: ConfigSource[],
  options: Location & { trusted: boolean | TrustCheck },
): Promise<ConfigSource[]> {
  const { trusted } = options
  if (trusted === true) return sources
  const judged: ConfigSource[] = []
  for (const source of sources) {
    const ofProject = source.scope === "project"
    const looked = !ofProject
      ? source
      : trusted === false
        ? { ...source, trusted: false }
        : await judge(source, trusted, options)
    // An agent or command has no part that would count before trust.
    if (looked.trusted || !isText(looked)) judged.push(looked)
  }
  return judged
}

/** What counts of a trusted file, also of what it puts in, is what the check was about. */
async function judge(source: ConfigSource, check: TrustCheck, location: Location): Promise<ConfigSource> {
  const kind = trustKind(source.path)
  const path = trustPath(location.worktree, source.path)
  if (kind !== "config")
    return { ...source, trusted: check([{ kind, path, hash: source.hash }]).changed.length === 0 }
  const { readTrustContent } = await import("./trust-content.ts")
  const { hash, read } = await readTrustContent(source, location)
  return { ...source, trusted: check([{ kind, path, hash }]).changed.length === 0, read }
}

/** An agent or command in Markdown that was written for another program. */
export function isForeignText(source: Pick<ConfigSource, "path" | "kind">): boolean {
  return source.kind !== "tackle" && isText(source)
}

/** An agent or command in Markdown. */
export function isText({ path }: Pick<ConfigSource, "path">): boolean {
  return trustKind(path) !== "config"
}
