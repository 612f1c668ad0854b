import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { isRecord } from "../../util/json.ts"
import { displayPath } from "../../util/paths.ts"
import { diffCount } from "./diff-count.ts"
import { style } from "./style.ts"
import { oneLine } from "./visible.ts"

/**
 * What formatters did after a change of files, a line each: `formatted by biome · +2 −1`, `not formatted: biome: …`. The
 * file is named where the call changed several.
 */
export function formattingLines({ metadata }: ToolStateCompleted, worktree: string, width: number): string[] {
  const named = (file: Record<string, unknown>) =>
    typeof file.path === "string" ? `${displayPath(file.path, worktree)} ` : ""
  const done = [metadata.formatted].flat().flatMap((file) => {
    if (!isRecord(file) || !Array.isArray(file.by)) return []
    const count = typeof file.diff === "string" && file.diff !== "" ? ` · ${diffCount(file.diff)}` : ""
    return `${named(file)}formatted by ${file.by.join(" and ")}${count}`
  })
  const failed = [metadata.notFormatted].flat().flatMap((file) => {
    if (typeof file === "string") return `not formatted: ${file}`
    return isRecord(file) ? `${named(file)}not formatted: ${String(file.problem)}` : []
  })
  return [
    ...done.map((text) => style.dim(`  ${oneLine(text, width - 2)}`)),
    ...failed.map((text) => style.yellow(`  ${oneLine(text, width - 2)}`)),
  ]
}
