import type { Rule } from "../schema/permission.ts"
import { isDirectory } from "../util/file-system.ts"
import { isInside, resolvePath } from "../util/paths.ts"
import { wildcardCovers } from "../util/wildcard.ts"
import { networkOf } from "./command-bounds.ts"
import { deniedName, externalChecks, fileChecks, type ResolvedScope, resolveScope } from "./path-checks.ts"
import {
  expandPolicy,
  isStricter,
  type Judgement,
  judge,
  namedRules,
  type Policy,
  withDefault,
  withoutGeneralAsks,
} from "./policy.ts"
import type { Check, JudgedCheck, PermissionAsk, Scope, Verdict } from "./request.ts"
import { permissionType } from "./rules.ts"
import { type BashChecks, bashChecks } from "./shell/bash-checks.ts"
import { needsNetwork } from "./shell/program-table.ts"

/** A verdict with the judgement of each check, and the policy that was applied. */
export interface DetailedVerdict extends Verdict {
  details: { check: Check; judgement: Judgement }[]
  /** The policy with `~` and `$HOME` expanded. Its rules have the same order as in the given policy. */
  policy: Policy
}

/**
 * Splits a request into checks, judges each check and returns the strictest verdict. Reads the file system, for example
 * to resolve links and to find the files that a command reads. Throws the system error if the worktree or the home
 * directory cannot be resolved.
 */
export async function checkRequest(
  request: PermissionAsk,
  scope: Scope,
  home: string,
): Promise<DetailedVerdict> {
  const policy = expandPolicy(scope.policy(), home)
  const resolved = resolveScope(scope, home)
  const { checks, commands } = await expand(request, { scope, resolved, policy, home })
  const all = checks.flatMap((check) => [check, ...linkedChecks(check, resolved, policy)])
  const details = distinct(all).map((check) => {
    const judgement = judgeCheck(check, policy)
    // The request shows the name that the deciding rule uses, so that a new rule for this name applies.
    return {
      check: judgement.name === undefined ? check : { ...check, permission: judgement.name },
      judgement,
    }
  })
  const verdict: DetailedVerdict = {
    action: "allow",
    checks: details.map(({ check, judgement }) => describe(check, judgement)),
    details,
    policy,
  }
  for (const { judgement } of details)
    if (isStricter(judgement.action, verdict.action)) verdict.action = judgement.action
  if (commands) {
    verdict.commands = commands.map(({ command, check }) => {
      const { action, rule, reason } = describe(check, judgeCheck(check, policy))
      return { argv: command.argv.map((word) => word.text), pattern: command.pattern, action, rule, reason }
    })
  }
  return verdict
}

async function expand(
  request: PermissionAsk,
  { scope, resolved, policy, home }: { scope: Scope; resolved: ResolvedScope; policy: Policy; home: string },
): Promise<{ checks: Check[]; commands?: BashChecks["commands"] }> {
  const locate = (path: string) => resolvePath(path, scope.directory, home)
  const permission = permissionType(request.permission)
  // A request without patterns is judged with the pattern `*`. Without any check, it would be allowed.
  const patterns = request.patterns.length > 0 ? request.patterns : ["*"]
  const outside = (request.paths ?? []).flatMap((path) => externalChecks(locate(path), resolved))

  if (permission === "read" || permission === "edit") {
    const checks = patterns.flatMap((path) => fileChecks(permission, locate(path), resolved))
    return { checks: [...checks.map((check) => withRemembered(check, request)), ...outside] }
  }
  if (permission === "bash" || permission === "sandbox_escape") {
    const workdir = request.metadata?.workdir
    const directory = typeof workdir === "string" ? locate(workdir) : scope.directory
    const sandbox = permission === "bash" && request.confined ? scope.sandbox : undefined
    const parts: BashChecks[] = []
    for (const text of patterns)
      parts.push(await bashChecks({ text, directory, scope, resolved, policy, home, sandbox }))
    const found = [...externalChecks(directory, resolved), ...parts.flatMap((part) => part.checks)]
    if (sandbox?.allows && (await sandbox.works()))
      markConfined(
        found,
        parts.flatMap((part) => part.commands),
        { resolved, policy },
      )
    const escapes = permission === "sandbox_escape"
    const checks = escapes ? found.flatMap((check) => escapeChecks(check, policy)) : found
    return { checks: [...checks, ...outside], commands: parts.flatMap((part) => part.commands) }
  }
  const checks = patterns.map((pattern) =>
    withRemembered(
      { permission, pattern, forms: [pattern], options: { ...namedRules(permission), alias: request.alias } },
      request,
    ),
  )
  // A search in a single file shows lines of the file, so the search needs `read`. A search in a directory skips
  // secrets.
  const files = permission === "grep" ? (request.paths ?? []).map((path) => locate(path)) : []
  const reads = files
    .filter((path) => !isDirectory(path))
    .flatMap((path) => fileChecks("read", path, resolved))
  return { checks: [...checks, ...reads, ...outside] }
}

/** Returns checks for the denied name of a file that is read under another name (a hard link). */
function linkedChecks(check: Check, scope: ResolvedScope, policy: Policy): Check[] {
  const { permission, resolved, onlyDenies } = check
  const reads = permission === "read" && resolved !== undefined && !onlyDenies
  const name = reads && deniedName(resolved, scope, policy)
  return name ? fileChecks("read", name, scope).filter((each) => each.permission === "read") : []
}

/**
 * Returns the check for a command, and a new check for running the command outside the sandbox. If both checks ask,
 * returns only the new check, because permission to run outside the sandbox includes permission to run. Returns a check
 * for another permission unchanged.
 */
function escapeChecks(check: Check, policy: Policy): Check[] {
  if (check.permission !== "bash") return [check]
  const { pattern, forms, options, reason, remember, onlyOnce } = check
  const named = namedRules("sandbox_escape")
  const counts = (rule: Rule) => named.counts?.(rule) !== false && options.counts?.(rule) !== false
  const outside: Check = {
    permission: "sandbox_escape",
    pattern,
    forms,
    options: { ...options, counts },
    reason,
    remember,
    onlyOnce,
  }
  const bothAsk = [check, outside].every((each) => judgeCheck(each, policy).action === "ask")
  return bothAsk ? [outside] : [check, outside]
}

/**
 * Adds the patterns that an "always" reply remembers: the request's `always` patterns. If `always` is undefined, adds
 * the check's pattern, unless it contains wildcards and is not `*`. Protected files and repeated calls are never
 * remembered, so they ask every time. A check for `external_directory` already contains its patterns.
 */
function withRemembered(check: Check, { always }: PermissionAsk): Check {
  const { permission, pattern, protection } = check
  if (permission === "external_directory" || permission === "doom_loop" || protection !== undefined)
    return check
  const patterns = always ?? (/[*?]/.test(pattern) && pattern !== "*" ? [] : [pattern])
  return patterns.length > 0 ? { ...check, remember: patterns } : check
}

function judgeCheck(check: Check, policy: Policy): Judgement {
  const { permission, forms, options, proof, own, onlyDenies, covered } = check
  const judgement = judge(proof ? withDefault(policy, proof) : policy, permission, forms, options)
  if (judgement.action !== "ask") return judgement
  if (check.confined) {
    const lifted = judge(
      withoutGeneralAsks(policy, permission, sandboxRule(permission)),
      permission,
      forms,
      options,
    )
    if (lifted.action === "allow") return lifted
  }
  const { rule } = judgement
  const general = covered && rule?.action === "ask" && wildcardCovers(rule.pattern, "*")
  return own || onlyDenies || general ? { action: "allow" } : judgement
}

/** Returns the default rule that allows the confined checks for a permission. */
function sandboxRule(permission: string): Rule {
  return { permission, pattern: "*", action: "allow", source: { file: "sandbox.allow" } }
}

/**
 * Marks the checks of actions whose effects the sandbox limits: access to ordinary files inside the worktree, and
 * commands that show no secrets from the repository. If the network is closed, a command that needs the network is not
 * marked.
 */
function markConfined(
  checks: readonly Check[],
  commands: BashChecks["commands"],
  { resolved, policy }: { resolved: ResolvedScope; policy: Policy },
): void {
  const isOpen = networkOf(policy) !== "closed"
  const leaving = commands.filter(
    ({ command, showsSecrets }) => showsSecrets || (!isOpen && needsNetwork(command.argv)),
  )
  const asking = new Set(leaving.map(({ check }) => check))
  for (const check of checks) {
    const { permission, protection, resolved: path } = check
    if (permission === "bash") check.confined = !asking.has(check)
    else if (permission === "read" || permission === "edit")
      check.confined = !protection && path !== undefined && isInside(path, resolved.realWorktree)
  }
}

/**
 * Returns rules that allow all checks, in the format of `--allow`, such as `bash:npm test`. For each check, tries its
 * spellings without wildcards first, and then the patterns that "always" remembers. Returns undefined if these rules
 * cannot allow every check.
 */
export function rulesThatAllow(checks: readonly Check[], policy: Policy): string[] | undefined {
  const found = checks.map((check) => {
    const { permission, pattern, forms, remember = [] } = check
    const literal = [pattern, ...forms].filter((text) => !/[*?]/.test(text))
    return [...literal, ...remember]
      .map((candidate) => ({ permission, pattern: candidate, action: "allow" as const }))
      .find((rule) => {
        const layers = [...policy.layers, { name: "flags" as const, rules: [rule] }]
        return judgeCheck(check, { ...policy, layers }).action === "allow"
      })
  })
  if (found.includes(undefined)) return undefined
  return [...new Set(found.flatMap((rule) => (rule ? `${rule.permission}:${rule.pattern}` : [])))]
}

function describe(check: Check, { action, rule, layer }: Judgement): JudgedCheck {
  const { permission, pattern } = check
  const reason = action === "allow" ? undefined : check.reason
  return { permission, pattern, action, rule, layer, reason }
}

function distinct(checks: readonly Check[]): readonly Check[] {
  if (checks.length < 2) return checks
  const known = new Map<string, Check>()
  for (const check of checks) {
    const { permission, pattern, forms, options, reason } = check
    const key = JSON.stringify([permission, pattern, forms, options.span, reason])
    if (!known.has(key)) known.set(key, check)
  }
  return [...known.values()]
}
