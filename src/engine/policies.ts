import type { Agent } from "../agent/agent.ts"
import { type Layer, type Policy, withFixedCeiling } from "../permission/policy.ts"
import { defaultRules, rulesFromObject } from "../permission/rules.ts"
import type { Ruleset } from "../schema/permission.ts"
import type { Session } from "../schema/session.ts"
import type { Lineage } from "../session/lineage.ts"
import type { Grants } from "../store/grants.ts"
import type { Agents } from "./agents.ts"
import type { TackleOptions } from "./options.ts"
import { type PlanFile, planRules } from "./plan-files.ts"

/** What agents may do, and where. A place that is no stored session has an id of its own, or an empty one. */
export interface Policies {
  /** Made anew at each call: from the grants and the sessions above as they are then. */
  of(place: PolicyPlace, agent: Agent): Policy
  /** Brings the grants and sessions that `of` reads up to date with the store. Throws `OrphanError`. */
  load(place: PolicyPlace): Promise<void>
}

/** A session, as far as its policy depends on it. */
export type PolicyPlace = Pick<Session, "id" | "worktree" | "parentID">

/** Where the rules of a policy come from. */
export interface PolicySources {
  /** In rising order: see {@link configuredLayers}. Those of flags come over the agent's. */
  configured: readonly Layer[]
  agents: Pick<Agents, "known">
  lineage: Lineage
  grants: Pick<Grants, "load" | "rules">
  planFile: PlanFile
  /** Without one, the agents that need it have no commands but those their configuration lifts the ban on. */
  hasSandbox: boolean
}

/** Reads nothing by itself: `load` does. */
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

  /** A subagent is bound by all that binds the session which started it. */
  function policyOf(place: PolicyPlace, agent: Agent): Policy {
    const [parent] = lineage.above(place)
    const own = ownPolicy({ id: lineage.rootOf(place.id), worktree: place.worktree }, agent)
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
    const bans = agent.sandbox && !hasSandbox ? withoutSandbox : []
    const ceiling = [...(agent.ceiling ?? []), ...bans, ...plan]
    return ceiling.length > 0 ? { layers, ceiling } : { layers }
  }

  return {
    of: policyOf,
    async load(place) {
      await lineage.load(place)
      await grants.load({ id: lineage.rootOf(place.id), worktree: place.worktree })
    },
  }
}

/** The layers that the options give, else one of their plain rules. */
export function configuredLayers({ layers, permission = {} }: TackleOptions): readonly Layer[] {
  return layers ?? [{ name: "user", rules: rulesFromObject(permission, { file: "createTackle" }) }]
}

/** The bound of an agent whose commands need a sandbox, where there is none. */
const withoutSandbox: Ruleset = [
  { permission: "bash", pattern: "*", action: "deny", source: { file: "no sandbox for the built-in agent" } },
]
