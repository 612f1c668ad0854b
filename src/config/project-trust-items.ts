import { join } from "node:path"
import { collectTrustItems, type FoundItem, type TrustItem, trustKinds } from "../permission/trust-items.ts"
import { isFile } from "../util/file-system.ts"
import { possibleConfigDirectories, projectDirectories } from "./config-directories.ts"
import { configFiles } from "./config-files.ts"
import type { Location } from "./location.ts"
import { markdownPlace } from "./markdown-place.ts"
import { readSmallFile, type SmallFile } from "./read.ts"
import { projectSkillFiles } from "./skill-files.ts"

/**
 * What a project brings that has to be trusted before it counts: its config, tools, plugins, skills, agents and commands,
 * and the installed packages that its config names as plugins; also the person's own tools, where the work tree holds
 * them. A config that cannot be parsed has no hash, and names no packages: whoever loads it says what is wrong with it.
 */
export async function projectTrustItems(
  location: Location & { dataDirectory: string },
  wanted: readonly TrustItem["kind"][] = trustKinds,
): Promise<FoundItem[]> {
  const own = configFiles(location).filter(({ path, scope }) => scope === "project" && isFile(path))
  const holding = (kind: TrustItem["kind"]) =>
    own.filter(({ path }) => trustKind(path) === kind).map(({ path }) => path)
  const config: { path: string; hash: string }[] = []
  const packages: { name: string; root: string; provided: readonly string[] }[] = []
  const understood = wanted.includes("config") || wanted.includes("plugin")
  for (const path of understood ? holding("config") : []) {
    const file = readIfPossible(path)
    config.push({ path, hash: await hashConfig(path, file, location) })
    const { namedPackages } = await import("./plugin-packages.ts")
    packages.push(...(await namedPackages({ path, scope: "project", text: file?.text ?? "" }, location)))
  }
  const below = (directories: readonly string[], names: readonly string[]) =>
    directories.flatMap((path) => names.map((name) => join(path, name)))
  const project = projectDirectories(location)
  const exposed = possibleConfigDirectories(location).flatMap((each) => (each.exposed ? [each.path] : []))
  const items = collectTrustItems(location.worktree, {
    config,
    agents: holding("agent"),
    commands: holding("command"),
    toolFolders: wanted.includes("tool") ? below([...exposed, ...project], ["tool", "tools"]) : [],
    pluginFolders: wanted.includes("plugin") ? below(project, ["plugin", "plugins"]) : [],
    packages,
    skillFiles: wanted.includes("skill") ? projectSkillFiles(location) : [],
  })
  return items.filter(({ kind }) => wanted.includes(kind))
}

/** As what a file of {@link configFiles} is trusted. */
export function trustKind(path: string): TrustItem["kind"] {
  return markdownPlace(path)?.holds ?? "config"
}

/** Empty for what cannot be read: it is never trusted. */
async function hashConfig(path: string, file: SmallFile | undefined, location: Location): Promise<string> {
  // Brings the parsers: only where there is a config.
  const { readTrustContent } = await import("./trust-content.ts")
  return file === undefined ? "" : (await readTrustContent({ path, ...file }, location)).hash
}

function readIfPossible(path: string): SmallFile | undefined {
  try {
    return readSmallFile(path)
  } catch {
    // Whoever loads it says what is wrong with it.
    return undefined
  }
}
