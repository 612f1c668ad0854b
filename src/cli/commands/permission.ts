import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { type PermissionCase, readPermissionCases, runPermissionCase } from "../../config/permission-cases.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { type Explanation, joinExplanations } from "../../permission/explain.ts"
import type { PermissionAsk } from "../../permission/request.ts"
import type { Grant } from "../../schema/permission.ts"
import { fileReason, UsageError } from "../../util/errors.ts"
import { localDay } from "../../util/local-time.ts"
import { homeDirectory } from "../../util/paths.ts"
import { type AskSequence, askedBy } from "../asked-by.ts"
import { exitCode, verdictCode } from "../exit.ts"
import { warn } from "../notice.ts"
import { openTackle } from "../open-tackle.ts"
import { nearPermission } from "../permission-names.ts"
import { directoryOf, type FormatFlags, openPlace, type Place, type PlaceFlags } from "../place.ts"
import { printJson, printLine } from "../print.ts"
import { withRecords } from "../records.ts"
import type { RuleFlags } from "../rule-layers.ts"
import { describeExplanation } from "../view/explanation.ts"
import { folded, oneLine, visible } from "../view/visible.ts"

/** `agent`: by whose rules. Default: those of the default agent. */
export interface CheckFlags extends FormatFlags, RuleFlags {
  agent?: string
  /** The older name of `--format json`. */
  json?: boolean
}

/** `tackle permission check <permission> <pattern…>`: the verdict and what it rests on. */
export async function checkPermission(
  permission: string,
  patterns: string[],
  flags: CheckFlags,
): Promise<void> {
  const agent = flags.agent === undefined ? {} : { agent: flags.agent }
  const place = await openPlace(flags)
  const near = nearPermission(permission, place)
  if (near !== undefined)
    warn(`"${permission}" is asked for by no tool of Tackle's own. Did you mean "${near}"?`)
  const { explanation, worktree } = await withTackle(place, flags, async (tackle) => ({
    explanation: await explainAll(
      askedBy({ permission, patterns }, { directory: tackle.directory, note: warn }),
      (ask) => tackle.explain({ ...ask, ...agent }),
    ),
    worktree: tackle.worktree,
  }))
  process.exitCode = verdictCode[explanation.verdict]
  if (flags.json || flags.format === "json") return printJson(explanation)
  printLine(explanation.verdict)
  for (const line of describeExplanation(explanation, worktree)) printLine(`  ${line}`)
}

async function explainAll(
  asks: AskSequence,
  explain: (ask: PermissionAsk) => Promise<Explanation>,
): Promise<Explanation> {
  const explanations: Explanation[] = []
  for await (const ask of asks) {
    const explanation = await explain(ask)
    explanations.push(explanation)
    if (explanation.verdict === "deny") break
  }
  return joinExplanations(explanations)
}

/** `tackle permission test <file…>`: whether rules come to the verdicts that a file expects of them. */
export async function testPermissions(files: string[], flags: PlaceFlags): Promise<void> {
  const otherwise = directoryOf(flags.dir)
  let [passed, failed] = [0, 0]
  const read: { file: string; cases: PermissionCase[] }[] = []
  for (const file of files) read.push({ file, cases: await readPermissionCases(readText(file), file) })
  for (const { file, cases } of read) {
    for (const entry of cases) {
      const result = await runPermissionCase(entry, { otherwise, home: homeDirectory() })
      if (result.passed) passed += 1
      else {
        failed += 1
        printFailure(`${file}:${entry.line}`, entry, result.explanation)
      }
    }
  }
  printLine(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = exitCode.failed
}

/** `tackle permission list`: what was granted with "always" in this project. */
export async function listGrants(flags: FormatFlags): Promise<void> {
  const grants = await withRecords(flags, (tackle) => tackle.grants())
  if (flags.format === "json") return printJson({ grants })
  if (grants.length === 0) return printLine("Nothing was granted in this project.")
  const { isTTY, columns } = process.stdout
  for (const line of grants.map(describeGrant)) printLine(isTTY ? folded(line, columns) : line)
}

/** `tackle permission revoke <id…>`, or all with `--all`. */
export async function revokeGrants(ids: string[], flags: PlaceFlags & { all?: boolean }): Promise<void> {
  if ((flags.all === true) === ids.length > 0)
    throw new UsageError("Name the grants to revoke, or --all for every one.")
  const revoked = await withRecords(flags, async (tackle) => {
    const chosen = flags.all ? (await tackle.grants()).map(({ id }) => id) : ids
    await tackle.revoke(chosen)
    return chosen.length
  })
  printLine(`${revoked} revoked.`)
}

async function withTackle<T>(
  place: Place,
  flags: PlaceFlags & RuleFlags,
  work: (tackle: Tackle) => Promise<T>,
): Promise<T> {
  const tackle = await openTackle(place, flags)
  try {
    return await work(tackle)
  } finally {
    await tackle.close()
  }
}

function readText(file: string): string {
  try {
    return readFileSync(resolve(file), "utf8")
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${fileReason(error)}.`, error)
  }
}

function printFailure(
  place: string,
  { permission, patterns, expect, note }: PermissionCase,
  why: Explanation,
): void {
  const shown = oneLine(patterns.map((pattern) => JSON.stringify(pattern)).join(", "), 160)
  printLine(
    `${place}: expected ${expect}, got ${why.verdict}: ${permission} ${shown}${note ? ` (${visible(note)})` : ""}`,
  )
  for (const line of describeExplanation(why, "/")) printLine(`    ${line}`)
}

function describeGrant({ id, scope, sessionID, permission, pattern, time }: Grant): string {
  const where = scope === "session" ? `session ${sessionID}` : "project"
  return `${id}  ${permission}: ${oneLine(pattern, 60)}  (${where}, ${localDay(time.created)})`
}
