import type { Rule } from "../schema/permission.ts"
import { resolvePath } from "../util/paths.ts"
import { externalChecks, fileChecks, isDirectory, resolveScope } from "./path-checks.ts"
import {
  expandPolicy,
  isStricter,
  type Judgement,
  judge,
  namedRules,
  type Policy,
  withDefault,
} from "./policy.ts"
import type { Check, JudgedCheck, JudgedCommand, PermissionAsk, Scope, Verdict } from "./request.ts"
import { permissionType } from "./rules.ts"
import { type BashChecks, bashChecks } from "./shell/bash-checks.ts"

/** A verdict with the checks it was made of, for those who have to ask, and the policy that judged them. */
export interface DetailedVerdict extends Verdict {
  details: { check: Check; judgement: Judgement }[]
  /** As it was applied: with `~` and `$HOME` written out. Its rules stand in the order of the one that was given. */
  policy: Policy
}

/**
 * What the rules say to a request: it is taken apart into single checks, each is judged, and the strictest holds.
 * Touches nothing but the names of files, to follow links. Throws what the system throws where the worktree itself
 * cannot be resolved.
 */
export async function checkRequest(
  request: PermissionAsk,
  scope: Scope,
  home: string,
): Promise<DetailedVerdict> {
  const policy = expandPolicy(scope.policy(), home)
  const { checks, bash } = await expand(request, scope, policy, home)
  const details = distinct(checks).map((check) => ({ check, judgement: judgeCheck(check, policy) }))
  const verdict: DetailedVerdict = {
    action: "allow",
    checks: details.map(({ check, judgement }) => describe(check, judgement)),
    details,
    policy,
  }
  for (const { judgement } of details)
    if (isStricter(judgement.action, verdict.action)) verdict.action = judgement.action
  if (bash) {
    verdict.commands = bash.commands.map(({ command, check }) => {
      const { action, rule, reason } = describe(check, judgeCheck(check, policy))
      const judged: JudgedCommand = {
        argv: command.argv.map((word) => word.text),
        pattern: command.pattern,
        action,
      }
      if (rule) judged.rule = rule
      if (reason !== undefined) judged.reason = reason
      return judged
    })
    verdict.needsHardenedGit = details.some(
      ({ check, judgement }) => check.hardenedGit === true && judgement.rule === check.proof,
    )
  }
  return verdict
}

async function expand(
  request: PermissionAsk,
  scope: Scope,
  policy: Policy,
  home: string,
): Promise<{ checks: Check[]; bash?: BashChecks }> {
  const resolved = resolveScope(scope)
  const locate = (path: string) => resolvePath(path, scope.directory, home)
  const permission = permissionType(request.permission)
  // Nothing asked must not mean everything allowed.
  const patterns = request.patterns.length > 0 ? request.patterns : ["*"]
  const outside = (request.paths ?? []).flatMap((path) => externalChecks(locate(path), resolved))

  if (permission === "read" || permission === "edit") {
    const checks = patterns.flatMap((path) => fileChecks(permission, locate(path), resolved))
    const remember = request.always ?? []
    return { checks: [...checks.map((check) => withRemembered(check, remember)), ...outside] }
  }
  if (permission === "bash" || permission === "sandbox_escape") {
    const workdir = request.metadata?.workdir
    const directory = typeof workdir === "string" ? locate(workdir) : scope.directory
    const parts: BashChecks[] = []
    for (const text of patterns)
      parts.push(await bashChecks({ text, directory, scope, resolved, policy, home }))
    const bash: BashChecks = {
      checks: [...externalChecks(directory, resolved), ...parts.flatMap((part) => part.checks)],
      commands: parts.flatMap((part) => part.commands),
    }
    if (permission === "sandbox_escape")
      bash.checks = bash.checks.flatMap((check) => escapeChecks(check, policy))
    return { checks: [...bash.checks, ...outside], bash }
  }
  const remember = request.always ?? []
  const checks = patterns.map((pattern) =>
    withRemembered({ permission, pattern, forms: [pattern], options: namedRules(permission) }, remember),
  )
  // A search shows the lines of a file it is given: the same as reading it. In directories it passes over secrets.
  const files = permission === "grep" ? (request.paths ?? []).map((path) => locate(path)) : []
  const reads = files
    .filter((path) => !isDirectory(path))
    .flatMap((path) => fileChecks("read", path, resolved))
  return { checks: [...checks, ...reads, ...outside] }
}

/**
 * A command outside the sandbox needs leave for both, to run and to run there. Where both would ask it is one question:
 * whoever lets it run outside lets it run.
 */
function escapeChecks(check: Check, policy: Policy): Check[] {
  if (check.permission !== "bash") return [check]
  const { pattern, forms, options, reason, remember } = check
  const named = namedRules("sandbox_escape")
  const counts = (rule: Rule) => named.counts?.(rule) !== false && options.counts?.(rule) !== false
  const leaving: Check = { permission: "sandbox_escape", pattern, forms, options: { ...options, counts } }
  if (reason !== undefined) leaving.reason = reason
  if (remember !== undefined) leaving.remember = remember
  const asksBoth = [check, leaving].every((each) => judgeCheck(each, policy).action === "ask")
  return asksBoth ? [leaving] : [check, leaving]
}

/** What the tool offers to remember, on the checks of its own permission. Protected files are asked for each time. */
function withRemembered(check: Check, patterns: readonly string[]): Check {
  const own = check.permission !== "external_directory" && check.protection === undefined
  return own && patterns.length > 0 ? { ...check, remember: patterns } : check
}

function judgeCheck(check: Check, policy: Policy): Judgement {
  const { permission, forms, options, proof, own } = check
  const judgement = judge(proof ? withDefault(policy, proof) : policy, permission, forms, options)
  return own && judgement.action === "ask" ? { action: "allow" } : judgement
}

function describe(check: Check, { action, rule, layer }: Judgement): JudgedCheck {
  const judged: JudgedCheck = { permission: check.permission, pattern: check.pattern, action }
  if (rule) judged.rule = rule
  if (layer) judged.layer = layer
  if (check.reason !== undefined && action !== "allow") judged.reason = check.reason
  return judged
}

function distinct(checks: readonly Check[]): readonly Check[] {
  if (checks.length < 2) return checks
  const known = new Map<string, Check>()
  for (const check of checks) {
    const key = JSON.stringify([
      check.permission,
      check.pattern,
      check.forms,
      check.options.span,
      check.reason,
    ])
    if (!known.has(key)) known.set(key, check)
  }
  return [...known.values()]
}
