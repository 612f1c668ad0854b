import type { LoadedConfig } from "../config/load.ts"
import { definitionPlaces, skillFiles } from "../config/locate.ts"
import { parseModelName } from "../model/model.ts"
import type { FoundItem, TrustItem } from "../permission/trust-items.ts"
import type { PluginSource } from "../plugin/source.ts"
import { dataPlaces } from "../runtime/data-directory.ts"
import type { DefinitionProblem, DefinitionSource, Definitions } from "../runtime/live-definitions.ts"
import type { SkillFile } from "../skill/load-skills.ts"
import { isInside } from "../util/paths.ts"
import { watchPlugins } from "./plugin-changes.ts"
import type { Place } from "./setup.ts"
import { askTrustAgain, describeNews, trustHint, type UntrustedNews } from "./trust-again.ts"
import { trustedItems } from "./trusted-items.ts"

/** Agents, commands and skills of the place as they were found at the start. */
export function definitionsOf(place: Place): Definitions {
  return { ...configured(place.config), skillFiles: trustedSkillFiles(place) }
}

/**
 * The same, as they are whenever something changed: those of the person, and those of the project that are trusted as they
 * are then. Config files that are no Markdown stay as they were read, and so do plugins: of a change of these it is told.
 */
export function definitionSource(place: Place, plugins: readonly PluginSource[]): DefinitionSource {
  const pluginChanges = watchPlugins(place, plugins)
  return {
    watched: () => [
      ...definitionPlaces(place),
      ...pluginChanges.watched(),
      dataPlaces(place.dataDirectory).trust,
    ],
    async find() {
      const trust = await askTrustAgain(place, ["agent", "command", "skill"])
      const changed = (items: readonly TrustItem[]) => items.filter((item) => !trust.isTrusted(item))
      const config = await place.config.withTexts((items) => ({ changed: changed(items) }))
      const skills = trust.trusted.filter(({ kind }) => kind === "skill")
      return {
        ...configured(config),
        skillFiles: skillFilesOf(place, skills),
        problems: [...trust.news.map(untrustedProblem), ...pluginChanges.problems()],
      }
    },
  }
}

/** Skills of the person, and those of the project whose text is the trusted one, in rising precedence. */
export function trustedSkillFiles(place: Place): SkillFile[] {
  return skillFilesOf(place, trustedItems(place, "skill"))
}

function skillFilesOf(place: Place, trusted: readonly FoundItem[]): SkillFile[] {
  const byFile = new Map(trusted.map(({ file, contents }) => [file, contents]))
  return skillFiles(place).flatMap((path) => {
    if (!isInside(path, place.worktree)) return [{ path }]
    const pinned = byFile.get(path)
    return pinned ? [{ path, pinned }] : []
  })
}

function untrustedProblem(news: UntrustedNews): DefinitionProblem {
  const { file, kind } = news.item
  return { file, message: `${describeNews(news)}: the ${kind} is not there. ${trustHint}` }
}

function configured(loaded: LoadedConfig): Definitions {
  return {
    agents: agentsOf(loaded.config),
    agentRules: loaded.agentPermission,
    projectAgentRules: loaded.projectAgentPermission,
    environmentAgentRules: loaded.environmentAgentPermission,
    commands: loaded.config.command ?? {},
  }
}

function agentsOf(config: LoadedConfig["config"]): NonNullable<Definitions["agents"]> {
  return Object.fromEntries(
    Object.entries(config.agent ?? {}).map(([name, { model, ...agent }]) => [
      name,
      { ...agent, ...(model === undefined ? {} : { model: parseModelName(model) }) },
    ]),
  )
}
