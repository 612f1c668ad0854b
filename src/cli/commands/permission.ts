import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import type { Command } from "commander"
import {
  type CaseSettings,
  type PermissionCase,
  readPermissionCases,
  runPermissionCase,
} from "../../config/permission-cases.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { type ExplainedRule, type Explanation, joinExplanations } from "../../permission/explain.ts"
import type { PermissionAsk } from "../../permission/request.ts"
import type { Grant } from "../../schema/permission.ts"
import { errorMessage, fileReason, UsageError } from "../../util/errors.ts"
import { displayPath, homeDirectory, resolvePath } from "../../util/paths.ts"
import { localDay } from "../../util/time.ts"
import { counted } from "../../util/words.ts"
import { folded, oneLine, visible } from "../../view/visible.ts"
import { exitCode, verdictCode } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { openTackle, withStore, withTackle } from "../workspace/engine.ts"
import { nearPermission, type RuleFlags } from "../workspace/rules.ts"
import { directoryOf, type FormatFlags, openWorkspace, type WorkspaceFlags } from "../workspace/workspace.ts"
import { collect, directoryFlag, formatFlag, jsonFlag, locationFlags, projectFlags } from "./flags.ts"

/** Defines `tackle permission` and its subcommands. */
export function definePermission(permission: Command): void {
  projectFlags(permission.command("check"))
    .description("show what the rules decide and why; exit code 0: allow, 10: ask, 11: deny")
    .argument("<permission>", "permission, such as bash, edit or a tool id")
    .argument("<pattern...>", "command, path, URL or arguments")
    .option("--agent <name>", "use the rules of this agent")
    .option("--allow <rule>", "allow permission[:pattern] (repeatable)", collect)
    .option("--deny <rule>", "deny permission[:pattern] (repeatable)", collect)
    .option("--sandboxed", "decide as if commands ran in the sandbox without asking")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(checkPermission)
  directoryFlag(permission.command("test"))
    .description("test rules against expected decisions")
    .argument("<file...>", "JSON Lines files; each line has the keys rules, permission, pattern and expect")
    .action(testPermissions)
  locationFlags(permission.command("list"))
    .description('list the permissions granted with "always" in this project')
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(listGrants)
  locationFlags(permission.command("revoke"))
    .description("revoke grants")
    .argument("[id...]", "ids from `permission list`")
    .option("--all", "revoke every grant in this project")
    .action(revokeGrants)
}

/** Flags for `tackle permission check`. `agent` is the agent whose rules apply. Default: the default agent. */
export interface CheckFlags extends FormatFlags, RuleFlags {
  agent?: string
}

/** Runs `tackle permission check <permission> <pattern…>`, which shows the decision and the reasons for it. */
export async function checkPermission(
  permission: string,
  patterns: string[],
  flags: CheckFlags,
): Promise<void> {
  const agent = flags.agent === undefined ? {} : { agent: flags.agent }
  const workspace = await openWorkspace(flags)
  const near = nearPermission(permission, workspace)
  if (near !== undefined)
    warn(`No built-in tool requests the permission "${permission}". Did you mean "${near}"?`)
  const work = async (tackle: Tackle) => ({
    explanation: await explainAll(
      askedBy({ permission, patterns }, { directory: tackle.directory, note: warn }),
      (ask) => tackle.explain({ ...ask, ...agent }),
    ),
    worktree: tackle.worktree,
  })
  const { explanation, worktree } = await withTackle(workspace, work, { flags })
  process.exitCode = verdictCode[explanation.verdict]
  if (flags.format === "json") return printJson(explanation)
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

/** Runs `tackle permission test <file…>`, which compares the rules' decisions with the expected decisions. */
export async function testPermissions(files: string[], flags: WorkspaceFlags): Promise<void> {
  const otherwise = directoryOf(flags.dir)
  let [passed, failed] = [0, 0]
  const read: { file: string; cases: PermissionCase[] }[] = []
  for (const file of files) read.push({ file, cases: await readPermissionCases(readText(file), file) })
  const isEffective = read.some(({ cases }) => cases.some(({ rules }) => rules === "effective"))
  await using rules = isEffective ? await openRules(flags) : undefined
  const settings: CaseSettings = {
    ...{ otherwise, home: homeDirectory() },
    effective: rules?.explain,
  }
  for (const { file, cases } of read) {
    for (const entry of cases) {
      const result = await runPermissionCase(entry, settings)
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

/** Opens the rules that apply in the directory. */
async function openRules(flags: WorkspaceFlags) {
  const tackle = await openTackle(await openWorkspace(flags), {})
  return {
    explain: (request: PermissionAsk) =>
      explainAll(askedBy(request, { directory: tackle.directory, note: warn }), (ask) => tackle.explain(ask)),
    [Symbol.asyncDispose]: () => tackle.close(),
  }
}

/** Runs `tackle permission list`, which lists the "always" grants in this project. */
export async function listGrants(flags: FormatFlags): Promise<void> {
  const grants = await withStore(flags, (tackle) => tackle.grants())
  if (flags.format === "json") return printJson({ grants })
  if (grants.length === 0) return printLine("This project has no grants.")
  const { isTTY, columns } = process.stdout
  for (const line of grants.map(describeGrant)) printLine(isTTY ? folded(line, columns) : line)
}

/** Runs `tackle permission revoke <id…>`. With `--all`, revokes every grant in the project. */
export async function revokeGrants(ids: string[], flags: WorkspaceFlags & { all?: boolean }): Promise<void> {
  if ((flags.all === true) === ids.length > 0)
    throw new UsageError("Pass either the ids of the grants to revoke or --all.")
  const revoked = await withStore(flags, async (tackle) => {
    const chosen = flags.all ? (await tackle.grants()).map(({ id }) => id) : ids
    await tackle.revoke(chosen)
    return chosen.length
  })
  printLine(`Revoked ${counted(revoked, "grant")}.`)
}

function readText(file: string): string {
  try {
    return readFileSync(resolve(file), "utf8")
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${fileReason(error)}.`, error)
  }
}

function printFailure(
  location: string,
  { permission, patterns, expect, note }: PermissionCase,
  why: Explanation,
): void {
  const shown = oneLine(patterns.map((pattern) => JSON.stringify(pattern)).join(", "), 160)
  printLine(
    `${location}: expected ${expect}, got ${why.verdict}: ${permission} ${shown}${note ? ` (${visible(note)})` : ""}`,
  )
  for (const line of describeExplanation(why, "/")) printLine(`    ${line}`)
}

function describeGrant({ id, scope, sessionID, permission, pattern, time }: Grant): string {
  const where = scope === "session" ? `session ${sessionID}` : "project"
  return `${id}  ${permission}: ${oneLine(pattern, 60)}  (${where}, ${localDay(time.created)})`
}

/** Time limit in ms for looking up a host name. */
const lookupMs = 5000

/**
 * The requests that a tool makes, in order. A consumer that stops at the first refusal prevents further host name
 * lookups.
 */
export type AskSequence = AsyncGenerator<PermissionAsk, void, void>

/**
 * Yields the requests that a tool makes when it needs `permission` for the given patterns. For `list`, each pattern is
 * a path, and the request contains the absolute paths. For `webfetch`, each pattern is a URL, and a request for the
 * normalized URLs is followed by one for each private host. Calls `note` with a message about each host that cannot be
 * looked up.
 */
export async function* askedBy(
  { permission, patterns }: { permission: string; patterns: readonly string[] },
  { directory, note }: { directory: string; note(text: string): void },
): AskSequence {
  if (permission === "list") {
    const paths = patterns.map((path) => resolvePath(path, directory))
    yield { permission, patterns: paths, paths }
  } else if (permission === "webfetch") {
    yield* askedByWebfetch(patterns, note)
  } else {
    yield { permission, patterns: [...patterns] }
  }
}

async function* askedByWebfetch(patterns: readonly string[], note: (text: string) => void): AskSequence {
  const { parseUrl } = await import("../../tools/web/fetch-page.ts")
  const { resolveHost } = await import("../../tools/web/fetch-page.ts")
  const addresses = patterns.map((text) => ({ text, url: plainAddress(text, parseUrl) }))
  yield { permission: "webfetch", patterns: addresses.map(({ text, url }) => url?.href ?? text) }
  const hosts = new Map(addresses.flatMap(({ url }) => (url ? [[url.host, url] as const] : [])))
  for (const url of hosts.values()) {
    try {
      const { host, inside } = await resolveHost(url, AbortSignal.timeout(lookupMs))
      if (inside.length > 0) yield { permission: "private_network", patterns: [host] }
    } catch (error) {
      note(`cannot determine whether ${url.host} is in a private network: ${errorMessage(error)}`)
    }
  }
}

/** Returns the URL, or undefined for a rule pattern and for a URL that `webfetch` rejects. */
function plainAddress(text: string, parse: (text: string) => URL): URL | undefined {
  if (text.includes("*") || !URL.canParse(text)) return undefined
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** Formats an explanation with a line for each check and for the rule that decided it. */
export function describeExplanation({ checks, shadowed }: Explanation, worktree: string): string[] {
  const lines = checks.flatMap(({ verdict, permission, pattern, rule, reason, resolved }) => {
    const [first = "", ...more] = visible(pattern).split("\n")
    const leads =
      resolved !== undefined && resolved !== pattern && !resolved.endsWith(`/${pattern}`)
        ? [`resolves to ${visible(resolved)}`]
        : []
    return [
      `${verdict.padEnd(5)}  ${permission}: ${first}`,
      ...[
        ...more,
        ...leads,
        ...(rule ? [`rule: ${describeRule(rule, worktree)}${possibleMatch(verdict, rule)}`] : []),
        ...(reason === undefined ? [] : [`because ${reason}`]),
      ].map((text) => `       ${text}`),
    ]
  })
  if (shadowed.length === 0) return lines
  return [...lines, "overruled:", ...shadowed.map((rule) => `       ${describeRule(rule, worktree)}`)]
}

/** Formats a rule as `deny bash: rm * (tackle.json:4)`. */
export function describeRule(
  { permission, pattern, action, source, line }: ExplainedRule,
  worktree: string,
): string {
  const file = source.startsWith("/") ? displayPath(source, worktree) : source
  return visible(`${action} ${permission}: ${pattern} (${file}${line === undefined ? "" : `:${line}`})`)
}

function possibleMatch(verdict: string, rule: ExplainedRule): string {
  return verdict === "ask" && rule.action === "deny" ? ", which could match at run time" : ""
}
