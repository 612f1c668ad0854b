import { dirname, join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import type { Policies, PolicySession } from "../call/context.ts"
import { plainRules } from "../config/rules.ts"
import { McpToolChangedError } from "../mcp/client/errors.ts"
import { judge, type Layer, type Policy, withFixedCeiling } from "../permission/policy.ts"
import { defaultRules } from "../permission/rules.ts"
import type { Grant, Ruleset } from "../schema/permission.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Skill } from "../skill/skill.ts"
import type { Grants } from "../store/grants.ts"
import { UsageError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import type { Agents } from "./definitions.ts"
import type { TackleOptions } from "./options.ts"

/** The sources of a policy's rules. */
export interface PolicySources {
  /** Layers in ascending precedence: see {@link configuredLayers}. Layers named `flags` override the agent's rules. */
  configured: readonly Layer[]
  agents: Pick<Agents, "known">
  lineage: Lineage
  grants: Pick<Grants, "load" | "rules">
  planFile: PlanFile
  /**
   * Whether a sandbox is present. If not, the commands of an agent that requires a sandbox are denied, with the
   * exceptions that `Agent.sandbox` describes.
   */
  hasSandbox: boolean
}

/** Creates the policies for an engine. Only `load` reads from the store. */
export function createPolicies({
  configured,
  agents,
  lineage,
  grants,
  planFile,
  hasSandbox,
}: PolicySources): Policies {
  const flags = configured.filter((layer) => layer.name === "flags")
  const belowAgent = configured.filter((layer) => layer.name !== "flags")

  /** Returns the policy for an agent in a session. All limits of the parent session also apply to a subagent. */
  function policyOf(session: PolicySession, agent: Agent): Policy {
    const [parent] = lineage.above(session)
    const own = ownPolicy({ id: lineage.rootOf(session.id), worktree: session.worktree }, agent)
    const bounded = parent ? { ...own, bound: policyOf(parent, agents.known(parent.agent)) } : own
    return agent.tools ? withFixedCeiling(bounded, agent.tools) : bounded
  }

  function ownPolicy(root: { id: string; worktree: string }, agent: Agent): Policy {
    const plan = agent.plans ? planRules(planFile(root)) : []
    const layers: Layer[] = [
      { name: "defaults", rules: [...defaultRules(), ...plan] },
      ...belowAgent,
      { name: "agent", rules: agent.permission },
      { name: "agent", rules: agent.projectPermission ?? [], keepsDenies: true },
      { name: "agent", rules: agent.environmentPermission ?? [] },
      ...flags,
      { name: "grants", rules: grants.rules(root) },
    ]
    const bans = agent.sandbox && !hasSandbox ? withoutSandbox(agent.name) : []
    const ceiling = [...(agent.ceiling ?? []), ...bans, ...plan]
    return ceiling.length > 0 ? { layers, ceiling } : { layers }
  }

  return {
    of: policyOf,
    async load(session) {
      await lineage.load(session)
      await grants.load({ id: lineage.rootOf(session.id), worktree: session.worktree })
    },
  }
}

/** Returns the layers in the options or, if `layers` is not set, one layer with the rules in `permission`. */
export function configuredLayers({ layers, permission = {} }: TackleOptions): readonly Layer[] {
  return layers ?? [{ name: "user", rules: plainRules(permission, "createTackle").rules }]
}

/** Returns the ceiling for an agent that requires a sandbox if no sandbox is present. */
function withoutSandbox(agent: string): Ruleset {
  const source = { file: `no sandbox for the agent ${agent}` }
  return [{ permission: "bash", pattern: "*", action: "deny", source }]
}

/** Returns the path of a session's plan, or undefined for a subagent's session or if plan mode is off. */
export type PlanFile = (session: { id: string; parentID?: string }) => string | undefined

/**
 * Creates the function that returns the paths of plans. Plans are stored below `root`, in one directory per session and
 * outside the project, because planning must not change the project. Without `root`, plan mode is off.
 */
export function createPlanFiles(root: string | undefined): PlanFile {
  return ({ id, parentID }) =>
    root === undefined || parentID !== undefined ? undefined : join(realPath(root), id, "plan.md")
}

/** Returns rules that allow an agent in plan mode to write the plan file. */
function planRules(file: string | undefined): Ruleset {
  if (file === undefined) return []
  const rule = { action: "allow", source: { file: "the plan file" } } as const
  return [
    { ...rule, permission: "edit", pattern: file },
    { ...rule, permission: "external_directory", pattern: `${dirname(file)}/*` },
  ]
}

/** Determines the subagents and skills that an agent's rules do not deny. Never asks the user. */
export interface AgentAccess {
  /** Returns the agents that the named agent may start, sorted by name. */
  subagents(agent: string): Agent[]
  /** Returns the skills that the named agent may load. */
  skills(agent: string): Skill[]
}

/**
 * Creates the functions that determine which subagents and skills an agent may use. `policy` returns an agent's policy
 * in the worktree, without a session.
 */
export function createAgentAccess(
  agents: Agents,
  skills: ReadonlyMap<string, Skill>,
  policy: (agent: Agent) => Policy,
): AgentAccess {
  return {
    subagents(name) {
      const rules = policy(agents.known(name))
      return agents.subagents().filter((agent) => judge(rules, "task", [agent.name]).action !== "deny")
    },
    skills(name) {
      if (skills.size === 0) return []
      const rules = policy(agents.known(name))
      return [...skills.values()].filter((skill) => judge(rules, "skill", [skill.name]).action !== "deny")
    },
  }
}

/**
 * Creates the functions that store, list and revoke the permissions that the user granted with "always" in a worktree.
 * The grants are stored in `book`, which does not know which sessions belong to a worktree or family.
 */
export function createWorktreeGrants(book: Grants, lineage: Pick<Lineage, "rootOf">, worktree: string) {
  function forFamily(grant: Grant): Grant {
    return grant.sessionID === undefined ? grant : { ...grant, sessionID: lineage.rootOf(grant.sessionID) }
  }

  return {
    /** Stores grants. A grant for "this session" that a subagent requested applies to its whole session family. */
    save: (added: readonly Grant[]) => book.add(added.map(forFamily)),
    /** Lists the grants of the project and its sessions, oldest first. */
    list: () => book.list(worktree),
    /** Revokes grants by id. If an id has no grant in the worktree, throws `UsageError` and revokes no grants. */
    async revoke(ids: readonly string[]): Promise<void> {
      const known = new Set((await book.list(worktree)).map(({ id }) => id))
      const unknown = ids.find((id) => !known.has(id))
      if (unknown !== undefined)
        throw new UsageError(
          `Unknown grant "${unknown}" in ${worktree}. Run \`tackle permission list\` to see the grants.`,
        )
      await book.remove(ids)
    },
    /**
     * Revokes the grants of tools whose definitions changed. Returns an error that lists the tools whose grants were
     * revoked, or undefined if no grant was revoked.
     */
    async lapse(tools: readonly string[]): Promise<McpToolChangedError | undefined> {
      const granted = (await book.list(worktree)).filter(({ permission }) => tools.includes(permission))
      if (granted.length === 0) return undefined
      await book.remove(granted.map(({ id }) => id))
      return new McpToolChangedError([...new Set(granted.map(({ permission }) => permission))])
    },
  }
}
