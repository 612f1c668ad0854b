import type { EnabledSetting } from "../../config/enabled-settings.ts"
import { wholeName } from "../../config/shown-name.ts"
import type { TrustItem } from "../../permission/trust.ts"
import { isRecord } from "../../util/json.ts"
import { isModuleFile } from "../../util/load-module.ts"
import { counted } from "../../util/words.ts"

/** An item in a project, and everything that trusting the item enables. */
export interface ShownItem extends TrustItem {
  /** `gone` means that the item was trusted and no longer exists. */
  state: "trusted" | "changed" | "new" | "gone"
  /** Settings that a config file, agent or command enables. */
  settings?: EnabledSetting[]
  /** Id of the tool. Absent if the file is not loaded as a tool. */
  tool?: string
  /**
   * All files that a tool or plugin may run or that belong to a skill. Keys are paths relative to the worktree, and
   * values are hashes.
   */
  files?: Record<string, string>
  /**
   * For a package, the number of dependencies that its hash covers and the names of the dependencies that it does not
   * cover.
   */
  dependencies?: { covered: number; beyond: readonly string[] }
}

/** Returns a description of an item. Escapes file contents, so that they cannot imitate other lines. */
export function describeItem(item: ShownItem): string {
  return [
    `${wholeName(item.path)}  (${states[item.state]})`,
    ...details(item).map((line) => `  ${line}`),
  ].join("\n")
}

const states = {
  new: "new",
  changed: "changed since you trusted it",
  trusted: "trusted",
  gone: "trusted, but no longer exists",
} as const

function details({
  kind,
  path,
  state,
  hash,
  settings = [],
  tool,
  files = {},
  dependencies,
}: ShownItem): string[] {
  if (state === "gone") return []
  if (hash === "") return ["cannot be read or parsed completely, so it cannot be trusted"]
  if (kind === "config" || kind === "agent" || kind === "command")
    return settings.length > 0 ? settings.map(describeSetting) : ["contains no settings"]
  const others = Object.keys(files).filter((file) => file !== path)
  if (kind === "skill") {
    return ["instructions for the model", ...others.map((file) => `includes ${wholeName(file)}`)]
  }
  if (kind === "plugin" && path.startsWith("npm:"))
    return [
      `code that runs with your permissions, as a plugin: ${counted(others.length, "file")} from an installed package`,
      ...describeDependencies(dependencies),
    ]
  if (kind === "plugin") {
    const own = isModuleFile(path)
      ? "code that runs with your permissions, as a plugin"
      : "not a plugin itself; plugins in this directory can import it"
    return [own, ...others.map((file) => `can import ${wholeName(file)}`)]
  }
  const own =
    tool === undefined
      ? "not a tool itself; tools in this directory can import it"
      : `code that runs with your permissions, as the tool ${wholeName(tool)}`
  return [own, ...others.map((file) => `can import ${wholeName(file)}`)]
}

function describeSetting({ key, value, rule, note }: EnabledSetting): string {
  const agent =
    rule && key !== "permission"
      ? `   (for the agent ${wholeName(key.split(".").slice(1, -1).join("."))})`
      : ""
  if (rule)
    return `${rule.action.padEnd(5)} ${wholeName(rule.permission)}: ${wholeName(rule.pattern)}${agent}`
  return `${wholeName(key)} = ${wholeName(spacedJson(value))}${note === undefined ? "" : `   (${wholeName(note)})`}`
}

/** Formats JSON on one line, with spaces where a terminal can wrap it. */
function spacedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`
  if (!isRecord(value)) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, entry]) => `${JSON.stringify(key)}: ${spacedJson(entry)}`)
    .join(", ")}}`
}

function describeDependencies({ covered, beyond }: NonNullable<ShownItem["dependencies"]> = noDependencies) {
  return [
    ...(covered === 0
      ? []
      : [` with ${counted(covered, "package")} that it depends on, in the versions that are installed now`]),
    ...(beyond.length === 0
      ? []
      : [
          ` not covered by trust, because the dependencies exceed the size limit: ${beyond.map(wholeName).join(", ")}`,
        ]),
  ]
}

const noDependencies = { covered: 0, beyond: [] }
