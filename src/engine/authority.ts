import { createPermission, type Permission } from "../permission/permission.ts"
import { createLineage, type Lineage } from "../session/lineage.ts"
import { defaultSubagentLimits, type SubagentLimits } from "../session/subagent.ts"
import { createGrants, type Grants } from "../store/grants.ts"
import { homeDirectory } from "../util/paths.ts"
import { guardedPlaces } from "./data-directory.ts"
import type { Equipment } from "./equipment.ts"
import type { Foundation } from "./foundation.ts"
import { createWorktreeGrants, type WorktreeGrants } from "./grants.ts"
import { createLacking } from "./lacking.ts"
import { createListening, type Listening } from "./listening.ts"
import type { OpenSessions } from "./open-sessions.ts"
import { createPlanFiles, type PlanFile } from "./plan-files.ts"
import { configuredLayers, createPolicies, type Policies } from "./policies.ts"
import { createReach, type Reach } from "./reach.ts"

/** What holds in the sessions of an engine: who started whom, what was granted, what the rules say, and who is asked. */
export interface Authority {
  lineage: Lineage
  grantStore: Grants
  grants: WorktreeGrants
  permission: Permission
  listening: Listening
  planFile: PlanFile
  policies: Policies
  reach: Reach
  lacking: ReturnType<typeof createLacking>
  subagentLimits: SubagentLimits
}

/** `opened` are the sessions under way. */
export function createAuthority(
  { options, place, places, mask, plugins, store }: Foundation,
  { bus, definitions, features, questions, sandbox }: Equipment,
  opened: Pick<OpenSessions, "find">,
): Authority {
  const { worktree } = place
  const { agents, skills } = definitions
  const plans = features.experimental.has("plan_mode")
  const lineage = createLineage(store, (id) => opened.find(id)?.info())
  const grantStore = createGrants(store)
  const grants = createWorktreeGrants(grantStore, lineage, worktree)
  const permission = createPermission({
    home: homeDirectory(),
    guarded: [...(options.configDirectories ?? []), ...guardedPlaces(place.dataDirectory, worktree)],
    publish: (event) => bus.publish(event),
    saveGrants: grants.save,
    dropGrants: grantStore.remove,
    ...(plugins === undefined ? {} : { decide: plugins.decide }),
    hide: mask.value,
  })
  const listening = createListening(bus, permission, questions)
  const planFile = createPlanFiles(plans ? places.plans : undefined)
  const policies = createPolicies({
    configured: configuredLayers(options),
    agents,
    lineage,
    grants: grantStore,
    planFile,
    hasSandbox: sandbox.present,
  })
  const subagentLimits: SubagentLimits = { ...defaultSubagentLimits, ...options.limits?.subagent }
  const reach = createReach(agents, skills, (agent) => policies.of({ id: "", worktree }, agent))
  const lacking = createLacking({
    agents,
    reach,
    lineage,
    depth: subagentLimits.depth,
    plans,
    answered: () => options.questions ?? listening.hearsQuestions(),
  })
  return {
    lineage,
    grantStore,
    grants,
    permission,
    listening,
    planFile,
    policies,
    reach,
    lacking,
    subagentLimits,
  }
}
