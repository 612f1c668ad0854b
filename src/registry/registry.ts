import type { Info } from "../tool/tool.ts"
import { errorMessage } from "../util/errors.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import type { LiveToolFiles, LoadedTools } from "./live-tool-files.ts"
import { mergeTools } from "./merge-tools.ts"
import { createOfferRules } from "./offer-rules.ts"
import { type OfferedTool, prepareTool } from "./offered-tool.ts"
import { type RegistryProblem, report, textOfProblem } from "./problems.ts"
import { describeSource, type RegisteredTool, type ToolScope } from "./registered-tool.ts"

/** Which tools exist, and which of them this agent and model are offered. */
export interface Registry {
  /** Every id, in the order in which tools are offered. */
  ids(): string[]
  get(id: string): RegisteredTool | undefined
  /** The tools for the model and agent. Their order is stable, so that prompt caches hold. */
  tools(scope: ToolScope): Promise<OfferedTool[]>
  /**
   * Why a tool that exists is not offered by the rules or the config; undefined where it is, or is none. One that is
   * not there under the circumstances is none.
   */
  withheld(id: string, scope: ToolScope): string | undefined
  /** All tools, with the reason where one is not offered. */
  list(scope: ToolScope): Promise<ToolListing[]>
  /** What was left out and why, as of the last listing. */
  problems(): readonly RegistryProblem[]
  /** True while the files of tools are, as far as was looked lately, what they were when these were listed. Cheap. */
  isCurrent(tools: readonly OfferedTool[]): boolean
  /** What tools say of themselves may be another now: those listed before are not current, and are made ready anew. */
  renew(): void
}

/** A line of `tackle tool list --all`. */
export interface ToolListing {
  id: string
  description: string
  parameters: JsonSchema
  source: string
  offered: boolean
  /** Why it is not offered. */
  reason?: string
}

/**
 * Merges tools in the order given. Of two with one id the first stays and the problem is reported; where `override`
 * names the id, the later one replaces it. `disabled` are ids that the config switched off.
 */
export function createRegistry(options: {
  tools: readonly RegisteredTool[]
  /** Tools that follow their files, behind these. Looked at whenever tools are listed. */
  files?: Pick<LiveToolFiles, "changedLately" | "read" | "last">
  /** Tools that come and go. Asked whenever tools are listed; they stand behind all others. Does not reject. */
  living?: () => Promise<readonly RegisteredTool[]>
  problems?: readonly RegistryProblem[]
  /** Hears of each problem that was not there from the beginning. */
  onProblem?: (problem: RegistryProblem) => void
  override?: readonly string[]
  disabled?: ReadonlySet<string>
  /** How long a tool may take to get ready, in milliseconds. Default: 10 s. */
  initLimitMs?: number
}): Registry {
  const { files, living, onProblem } = options
  const override = new Set(options.override)
  const rules = createOfferRules(options.disabled ?? new Set())
  let prepared = new WeakMap<Info, Map<string, Promise<OfferedTool>>>()
  let listedFrom = new WeakMap<readonly OfferedTool[], LoadedTools | "none">()
  let problems: RegistryProblem[] = []
  let byId = mergeAll([])
  const told = new Set(problems.map(textOfProblem))

  async function refresh(): Promise<void> {
    await files?.read()
    byId = mergeAll((await living?.()) ?? [])
    tell()
  }

  function mergeAll(others: readonly RegisteredTool[]): Map<string, RegisteredTool> {
    const custom = files?.last()
    problems = [...(options.problems ?? []), ...(custom?.problems ?? [])]
    return mergeTools([...options.tools, ...(custom?.tools ?? []), ...others], override, problems)
  }

  function tell(): void {
    for (const problem of problems) {
      if (told.has(textOfProblem(problem))) continue
      told.add(textOfProblem(problem))
      onProblem?.(problem)
    }
  }

  function prepare(entry: RegisteredTool, agent: string): Promise<OfferedTool> {
    const forAgents = prepared.get(entry.tool) ?? new Map<string, Promise<OfferedTool>>()
    prepared.set(entry.tool, forAgents)
    const tool = forAgents.get(agent) ?? prepareTool(entry, agent, options.initLimitMs)
    forAgents.set(agent, tool)
    return tool
  }

  /** Makes it ready as well. `against`: why it is not offered, as far as that is known before it is ready. */
  async function consider(entry: RegisteredTool, scope: ToolScope, against: string | undefined) {
    let reason = against
    try {
      const tool = await prepare(entry, scope.agent)
      const { providers } = tool.definition
      if (reason === undefined && providers && scope.model && !providers.includes(scope.model.providerID)) {
        reason = `only for models of ${providers.join(", ")}`
      }
      return { tool, reason }
    } catch (error) {
      report(problems, entry, errorMessage(error))
      tell()
      return { tool: undefined, reason: `its init failed: ${errorMessage(error)}` }
    }
  }

  return {
    ids: () => [...byId.keys()],
    get: (id) => byId.get(id),
    async tools(scope) {
      const listed = listedFrom
      await refresh()
      const from = files?.last() ?? "none"
      // What is not offered need not be made ready: that costs a schema each at every start.
      const possible = [...byId.values()].filter((entry) => rules.against(entry, scope) === undefined)
      const considered = await Promise.all(possible.map((entry) => consider(entry, scope, undefined)))
      const offered = considered.flatMap(({ tool, reason }) => (tool && reason === undefined ? [tool] : []))
      listed.set(offered, from)
      return offered
    },
    withheld(id, scope) {
      return byId.has(id) ? rules.withheld(id, scope) : undefined
    },
    async list(scope) {
      await refresh()
      return Promise.all(
        [...byId.values()].map(async (entry): Promise<ToolListing> => {
          const { tool, reason } = await consider(entry, scope, rules.against(entry, scope))
          return {
            id: entry.tool.id,
            description: tool?.definition.description ?? "",
            parameters: tool?.schema ?? {},
            source: describeSource(entry.source),
            offered: reason === undefined,
            ...(reason === undefined ? {} : { reason }),
          }
        }),
      )
    },
    problems: () => problems,
    isCurrent(tools) {
      const from = listedFrom.get(tools)
      return files ? from === files.last() && !files.changedLately() : from !== undefined
    },
    renew() {
      prepared = new WeakMap()
      listedFrom = new WeakMap()
    },
  }
}
