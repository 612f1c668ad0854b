import { definitionPaths, skillFiles } from "../../config/config-files.ts"
import type { LoadedConfig } from "../../config/load.ts"
import { trustKind } from "../../config/project-trust-items.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import type { DefinitionProblem, DefinitionSet, DefinitionSource } from "../../engine/definitions.ts"
import { parseModelName } from "../../model/model.ts"
import type { FoundItem, TrustItem } from "../../permission/trust.ts"
import type { PluginSource } from "../../plugin/source.ts"
import type { SkillFile } from "../../skill/skill.ts"
import { isInside } from "../../util/paths.ts"
import { watchPlugins } from "./plugins.ts"
import { describeChange, recheckTrust, trustHint, type UntrustedChange } from "./recheck-trust.ts"
import { trustedItems, type Workspace } from "./workspace.ts"

/** The result of {@link definitionsOf}. */
export type WorkspaceDefinitions = Omit<DefinitionSet, "skillFiles"> & { skillFiles: readonly SkillFile[] }

/** Returns the agents, commands and skills that were found in the workspace at startup. */
export function definitionsOf(workspace: Workspace): WorkspaceDefinitions {
  return { ...configured(workspace.config), skillFiles: trustedSkillFiles(workspace) }
}

/**
 * Returns a source that finds definitions again after a change. The source returns the user's definitions and the
 * project's definitions that are trusted at that time. It does not reload other config files or plugins, but reports
 * changes to plugins.
 */
export function definitionSource(
  workspace: Workspace,
  { definitions, plugins }: { definitions: WorkspaceDefinitions; plugins: readonly PluginSource[] },
): DefinitionSource {
  const pluginChanges = watchPlugins(workspace, plugins)
  const { trust: trustFile } = dataPaths(workspace.dataDirectory)
  const texts = workspace.config.files
    .filter(({ path }) => trustKind(path) !== "config")
    .map(({ path }) => path)
  const skills = definitions.skillFiles.map(({ path }) => path)
  const trusted =
    !workspace.trustedForRun && workspace.untrusted.length < workspace.items.length ? [trustFile] : []
  return {
    begun: { since: workspace.readAt, files: [...texts, ...skills, ...pluginChanges.begun, ...trusted] },
    watched: () => [...definitionPaths(workspace), ...pluginChanges.watched(), trustFile],
    async find() {
      const trust = await recheckTrust(workspace, ["agent", "command", "skill"])
      const changed = (items: readonly TrustItem[]) => items.filter((item) => !trust.isTrusted(item))
      const config = await workspace.config.withMarkdown((items) => ({ changed: changed(items) }))
      const skills = trust.trusted.filter(({ kind }) => kind === "skill")
      return {
        ...configured(config),
        skillFiles: trustedSkillFiles(workspace, skills),
        problems: [...trust.news.map(untrustedProblem), ...pluginChanges.problems()],
      }
    },
  }
}

function untrustedProblem(news: UntrustedChange): DefinitionProblem {
  const { file, kind } = news.item
  return { file, message: `${describeChange(news)}, so the ${kind} is unavailable. ${trustHint}` }
}

function configured(loaded: LoadedConfig): DefinitionSet {
  return {
    agents: agentsOf(loaded.config),
    agentRules: loaded.agentPermission,
    projectAgentRules: loaded.projectAgentPermission,
    environmentAgentRules: loaded.environmentAgentPermission,
    commands: loaded.config.command ?? {},
  }
}

function agentsOf(config: LoadedConfig["config"]): NonNullable<DefinitionSet["agents"]> {
  return Object.fromEntries(
    Object.entries(config.agent ?? {}).map(([name, { model, ...agent }]) => [
      name,
      { ...agent, ...(model === undefined ? {} : { model: parseModelName(model) }) },
    ]),
  )
}

/**
 * Lists the user's skills and the project's trusted skills, in order of increasing precedence. `trusted` defaults to
 * the project's skills that were trusted at startup.
 */
export function trustedSkillFiles(
  workspace: Workspace,
  trusted: readonly FoundItem[] = trustedItems(workspace, "skill"),
): SkillFile[] {
  const contentsOf = new Map(trusted.map(({ file, contents }) => [file, contents]))
  return skillFiles(workspace).flatMap((path) => {
    if (!isInside(path, workspace.worktree)) return [{ path }]
    const pinned = contentsOf.get(path)
    return pinned ? [{ path, pinned }] : []
  })
}
