import type { Command } from "commander"
import type { Usage } from "../../event/events.ts"
import { counted } from "../../util/words.ts"
import { usageWords } from "../../view/usage.ts"
import { visible } from "../../view/visible.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { withStore } from "../workspace/engine.ts"
import type { FormatFlags } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, locationFlags } from "./flags.ts"

/** Defines `tackle stats`. */
export function defineStats(stats: Command): void {
  locationFlags(stats)
    .option("--all", "include sessions in all projects")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(showStats)
}

/** Flags for `tackle stats`. `all` includes sessions in all projects. */
export interface StatsFlags extends FormatFlags {
  all?: boolean
}

/** Runs `tackle stats`, which shows the usage of this project's sessions or of all sessions. */
export async function showStats(flags: StatsFlags): Promise<void> {
  await withStore(flags, async (tackle) => {
    const stats = await tackle.sessions.stats({ everywhere: flags.all ?? false })
    if (flags.format === "json") return printJson(stats)
    const { sessions, prompts, usage, models, tools } = stats
    if (sessions === 0) return printLine("No sessions yet.")
    printLine([counted(sessions, "session"), counted(prompts, "prompt"), ...words(usage)].join(" · "))
    printTable(
      models.map(({ model, steps, usage: used }) => [model, counted(steps, "step"), words(used).join(" · ")]),
    )
    printTable(
      tools.map(({ tool, calls, failed, durationMs }) => [
        tool,
        counted(calls, "call"),
        [`${(durationMs / 1000).toFixed(1)} s`, ...(failed > 0 ? [`${failed} failed`] : [])].join(" · "),
      ]),
    )
  })
}

function words(usage: Usage): string[] {
  const known = usageWords(usage)
  return known.length > 0 ? known : ["no tokens counted"]
}

/** Prints aligned rows after an empty line. */
function printTable(rows: readonly (readonly string[])[]): void {
  if (rows.length === 0) return
  const shown = rows.map((row) => row.map((cell) => visible(cell)))
  const widths = (shown[0] ?? []).map((_, column) =>
    Math.max(...shown.map((row) => (row[column] ?? "").length)),
  )
  printLine("")
  for (const row of shown)
    printLine(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
}
