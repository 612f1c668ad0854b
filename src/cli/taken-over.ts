import { instructionFiles, trustKind } from "../config/locate.ts"
import { displayPath, isInside } from "../util/paths.ts"
import { trustedSkillFiles } from "./definitions.ts"
import type { Place } from "./setup.ts"

/** What counts although it was written for another program, by the program's directory and then by what it is. */
export type TakenOver = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>

/** Where other programs keep theirs, as it stands in a path. */
const programs: readonly (readonly [directory: string, pattern: RegExp])[] = [
  [".opencode", /\/(?:\.opencode|opencode)\/|\/opencode\.jsonc?$/],
  [".claude", /\/\.claude\/|\/CLAUDE\.md$|\/\.mcp\.json$/],
  [".agents", /\/\.agents\//],
]

/** Config files, agents, commands, skills and instructions of other programs that count here. Paths as people write them. */
export function takenOver(place: Place): TakenOver {
  const { config, worktree, home } = place
  const found: (readonly [what: string, path: string])[] = [
    ...config.files.map(({ path }) => [`${trustKind(path)}s`, path] as const),
    ...trustedSkillFiles(place).map(({ path }) => ["skills", path] as const),
    ...instructionFiles(place).map((path) => ["instructions", path] as const),
  ]
  const taken: Record<string, Record<string, string[]>> = {}
  for (const [what, path] of found) {
    const shown = isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
    // Of the path inside the project or home: what lies above says nothing of whose file it is.
    const program = programs.find(([, pattern]) => pattern.test(`/${shown}`))?.[0]
    if (program === undefined) continue
    taken[program] ??= {}
    taken[program][what] = [...(taken[program][what] ?? []), shown]
  }
  return taken
}

/** On one line. */
export function describeTakenOver(taken: TakenOver): string {
  const parts = Object.entries(taken).map(
    ([program, kinds]) =>
      `${program}: ${Object.entries(kinds)
        .map(([what, paths]) => `${what} ${paths.join(", ")}`)
        .join("; ")}`,
  )
  return parts.length === 0 ? "nothing of .opencode, .claude or .agents" : parts.join(". ")
}
