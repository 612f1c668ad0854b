import { join } from "node:path"
import { errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { displayPath, isInside } from "../util/paths.ts"
import type { Location } from "./location.ts"
import { readSmallFile } from "./read.ts"

const names = ["settings.json", "settings.local.json"]

/**
 * Of each file of Claude Code's settings that is there, the person's first, what it says; none of it counts. Its rules
 * are not translated: its patterns match otherwise than ours, and a deny that covers less than it says is none.
 */
export function unusedClaudeSettings({ home, worktree }: Location): string[] {
  const paths = [home, worktree].flatMap((root) => names.map((name) => join(root, ".claude", name)))
  return [...new Set(paths)].flatMap((path) => {
    const keys = keysOf(path)
    if (keys === undefined || keys === "") return []
    const shown = isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
    return [`${shown}: ${keys}`]
  })
}

/** Undefined where there is no file. */
function keysOf(path: string): string | undefined {
  try {
    const file = readSmallFile(path)
    if (file === undefined) return undefined
    const parsed = parseJson(file.text)
    if (!parsed.ok) return `no JSON (${parsed.error})`
    const entries = isRecord(parsed.value) ? Object.entries(parsed.value) : []
    return entries
      .filter(([key]) => key !== "$schema")
      .map(([key, value]) => describe(key, value))
      .join(", ")
  } catch (error) {
    // It is no part of our config: nobody is stopped by it.
    return `it cannot be read (${errorMessage(error)})`
  }
}

function describe(key: string, value: unknown): string {
  if (!isRecord(value)) return key
  const inner = Object.entries(value).map(([name, each]) =>
    key === "permissions" && Array.isArray(each) ? `${each.length} ${name}` : name,
  )
  const advice = key === "permissions" ? "; write them as rules in `permission`" : ""
  return `${key} (${inner.join(", ")}${advice})`
}
