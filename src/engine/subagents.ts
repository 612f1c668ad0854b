import type { SubagentLimits, SubagentServices } from "../session/subagent.ts"
import type { Agents } from "./agents.ts"
import type { OpenSessions } from "./open-sessions.ts"
import type { Reach } from "./reach.ts"

/** What starts subagents: each works in a session of its own, where the one above it works. */
export function createSubagents({
  limits,
  agents,
  reach,
  opened,
}: {
  limits: SubagentLimits
  agents: Pick<Agents, "subagentNamed">
  reach: Pick<Reach, "subagents">
  opened: Pick<OpenSessions, "begin" | "get" | "release">
}): SubagentServices {
  return {
    limits,
    agent: agents.subagentNamed,
    startable: (name) => reach.subagents(name).map((agent) => agent.name),
    start: ({ parent, agent, model, title }) =>
      opened.begin({
        directory: parent.directory,
        worktree: parent.worktree,
        parentID: parent.id,
        agent: agent.name,
        model,
        title,
      }),
    find: opened.get,
    release: opened.release,
  }
}
