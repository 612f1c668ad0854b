import type { Agent } from "../agent/agent.ts"
import { parseModelName } from "../model/model.ts"
import type { Permission } from "../permission/permission.ts"
import type { Registry } from "../registry/registry.ts"
import { orAbort } from "../util/abort.ts"
import type { Agents } from "./agents.ts"
import { type Lacking, onlyForMany } from "./lacking.ts"
import type { TackleOptions } from "./options.ts"
import type { EnginePlace } from "./place.ts"
import type { Policies } from "./policies.ts"
import type { Tackle } from "./tackle.ts"

/** What answers to people follow from. */
export interface LookupSources {
  place: Pick<EnginePlace, "directory" | "worktree">
  /** `PATH` of the commands that are asked about. */
  searchPath: { searchPath?: string }
  defaultAgent: string
  model: TackleOptions["model"]
  definitions: { agents: Pick<Agents, "named">; follow(): Promise<void> }
  policies: Policies
  permission: Pick<Permission, "explain">
  registry: Pick<Registry, "list">
  lacking(agent: Agent): Lacking
  hide<T>(value: T): T
}

/** What people ask of the rules and tools that hold for an agent in the work tree, outside of any session. */
export function createLookups(sources: LookupSources): Pick<Tackle, "explain" | "tools"> {
  const { place, searchPath, defaultAgent, definitions, policies, permission, registry, lacking, hide } =
    sources
  const { directory, worktree } = place
  const outside = { id: "", worktree }

  return {
    async explain({ agent: name = defaultAgent, ...request }) {
      await definitions.follow()
      const agent = definitions.agents.named(name)
      await policies.load(outside)
      const policy = () => policies.of(outside, agent)
      return hide(await permission.explain(request, { directory, worktree, policy, own: [], ...searchPath }))
    },
    async tools({ agent: name = defaultAgent, model, signal } = {}) {
      await definitions.follow()
      const agent = definitions.agents.named(name)
      const chosen = model ?? (typeof sources.model === "string" ? sources.model : undefined)
      const listed = registry.list({
        agent: agent.name,
        model: chosen === undefined ? { providerID: "", modelID: "" } : parseModelName(chosen),
        policy: policies.of(outside, agent),
        lacking: { ...lacking(agent), ...onlyForMany },
      })
      return signal ? orAbort(listed, signal) : listed
    },
  }
}
