import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { onTestFinished } from "vitest"
import type { EventInput } from "../../src/event/events.ts"
import { createPermission, type Permission } from "../../src/permission/permission.ts"
import type { Layer, Policy } from "../../src/permission/policy.ts"
import type { Scope, Verdict } from "../../src/permission/request.ts"
import { defaultRules, type PermissionConfig, rulesFromObject } from "../../src/permission/rules.ts"
import type { Grant } from "../../src/schema/permission.ts"
import { realPath } from "../../src/util/paths.ts"

/** Creates a temporary directory, with links followed. Removed when the test ends. */
export function temporaryDirectory(): string {
  const directory = realPath(mkdtempSync(join(tmpdir(), "tackle-permission-")))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Creates a policy from the defaults and a user's config. */
export function policyOf(user: PermissionConfig, more: Partial<Policy> & { layers?: Layer[] } = {}): Policy {
  const layers: Layer[] = [
    { name: "defaults", rules: defaultRules() },
    { name: "user", rules: rulesFromObject(user, { file: "tackle.json" }) },
    ...(more.layers ?? []),
  ]
  return more.ceiling ? { layers, ceiling: more.ceiling } : { layers }
}

/** Creates a scope in which nothing has to exist. */
export function scopeOf(policy: Policy, worktree = "/w", own: readonly string[] = []): Scope {
  return { directory: worktree, worktree, policy: () => policy, own }
}

/** A permission service that records its events and grants. */
export interface Harness {
  permission: Permission
  events: EventInput[]
  grants: Grant[]
}

export function harness(options: { home?: string; onEvent?: (event: EventInput) => void } = {}): Harness {
  const events: EventInput[] = []
  const grants: Grant[] = []
  const permission = createPermission({
    home: options.home ?? "/h",
    publish(event) {
      events.push(event)
      options.onEvent?.(event)
    },
    async saveGrants(added) {
      grants.push(...added)
    },
    async dropGrants(ids) {
      for (const id of ids)
        grants.splice(
          grants.findIndex((grant) => grant.id === id),
          1,
        )
    },
  })
  return { permission, events, grants }
}

/** Returns the verdict of a user's rules and the defaults, in a worktree that does not have to exist. */
export async function verdictOf(
  user: PermissionConfig,
  permission: string,
  pattern: string,
  options: { worktree?: string; home?: string } = {},
): Promise<Verdict> {
  const { permission: engine } = harness(options.home === undefined ? {} : { home: options.home })
  return engine.check({ permission, patterns: [pattern] }, scopeOf(policyOf(user), options.worktree))
}

/** Returns rules that allow these `bash` patterns. */
export function allow(...patterns: string[]): PermissionConfig {
  return { bash: Object.fromEntries(patterns.map((pattern) => [pattern, "allow" as const])) }
}

export function deny(...patterns: string[]): PermissionConfig {
  return { bash: Object.fromEntries(patterns.map((pattern) => [pattern, "deny" as const])) }
}
