import { type Alias, effectiveRules, isOffered } from "../permission/policy.ts"
import { permissionType } from "../permission/rules.ts"
import type { Info } from "../tool/tool.ts"
import { errorLine } from "../util/errors.ts"
import { own } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import type { LiveToolFiles, LoadedTools } from "./live-tool-files.ts"
import { type OfferedTool, prepareTool } from "./offered-tool.ts"
import {
  describeSource,
  permissionOf,
  type RegisteredTool,
  type RegistryProblem,
  report,
  type ToolScope,
} from "./registered-tool.ts"

/** Contains all tools, and selects the tools to offer to an agent and model. */
export interface Registry {
  /** Returns all ids in the order in which tools are offered. */
  ids(): string[]
  get(id: string): RegisteredTool | undefined
  /**
   * Returns the id of the tool with this id or, if no tool has this id, of the only tool with this alias. Returns
   * undefined if no tool matches, or if several tools have this alias.
   */
  idOf(name: string): string | undefined
  /**
   * Returns the name that the author gave a tool, if it differs from the id. Rules can use both names. If the name also
   * belongs to another tool or to a permission, rules for this name can only restrict this tool.
   */
  aliasOf(id: string): Alias | undefined
  /** Returns the tools to offer to the agent and model. The order is stable, so that prompt caches stay valid. */
  tools(scope: ToolScope): Promise<OfferedTool[]>
  /**
   * Returns the reason why the rules, the config or `scope.unavailable` make a tool unavailable, or undefined if they
   * do not or the name is unknown.
   */
  unavailableReason(name: string, scope: ToolScope): string | undefined
  /** Returns all tools. A tool that is not offered includes the reason. */
  list(scope: ToolScope): Promise<ToolListing[]>
  /** Returns the tools that the latest listing omitted, with the reasons. */
  problems(): readonly RegistryProblem[]
  /**
   * Returns false if tool files have changed or `renew` was called since these tools were listed. Cheap, because files
   * are checked at most every 200 ms.
   */
  isCurrent(tools: readonly OfferedTool[]): boolean
  /** Makes the next listing prepare all tools again. Call this when their definitions may have changed. */
  renew(): void
}

/** A tool that was prepared for an agent. `rules` returns the agent's rules as JSON, if the tool has read them. */
interface Prepared {
  tool: Promise<OfferedTool>
  rules(): string | undefined
}

/** An entry in a list of all tools, such as the list that `tackle tool list --all` prints. */
export interface ToolListing {
  id: string
  /** The name that the author gave the tool, if it differs from the id. Calls can use both. */
  alias?: string
  description: string
  parameters: JsonSchema
  source: string
  offered: boolean
  /** The reason why the tool is not offered. */
  reason?: string
}

/**
 * Creates a registry of tools in the given order. If two tools have the same id, the first is kept and a problem is
 * reported. If `override` contains the id, the second replaces the first. `disabled` contains the ids that the config
 * disables.
 */
export function createRegistry(options: {
  tools: readonly RegisteredTool[]
  /** Tools from watched files. They follow `tools` and are checked at every listing. */
  files?: Pick<LiveToolFiles, "changedLately" | "read" | "last">
  /**
   * Returns tools that can change at any time, such as tools from MCP servers. Called at every listing. These tools
   * come last. Must not reject.
   */
  dynamic?: () => Promise<readonly RegisteredTool[]>
  problems?: readonly RegistryProblem[]
  /** Receives each problem that occurs after the registry is created. */
  onProblem?: (problem: RegistryProblem) => void
  override?: readonly string[]
  disabled?: ReadonlySet<string>
}): Registry {
  const { files, dynamic, onProblem } = options
  const override = new Set(options.override)
  const rules = createOfferRules(options.disabled ?? new Set(), aliasOf)
  let prepared = new WeakMap<Info, Map<string, Prepared>>()
  let listedFrom = new WeakMap<readonly OfferedTool[], LoadedTools | "none">()
  let problems: RegistryProblem[] = []
  let byId = mergeAll([])
  const reported = new Set(problems.map(textOf))

  function aliasOf(id: string): Alias | undefined {
    const name = byId.get(id)?.tool.alias
    if (name === undefined) return undefined
    const isShared = [...byId.values()].some(
      ({ tool }) => tool.id === name || (tool.alias === name && tool.id !== id),
    )
    return { name, tightenOnly: isShared || permissionNames.has(permissionType(name)) }
  }

  function idOf(name: string): string | undefined {
    if (byId.has(name)) return name
    const named = [...byId.values()].filter(({ tool }) => tool.alias === name)
    return named.length === 1 ? named[0]?.tool.id : undefined
  }

  async function refresh(): Promise<void> {
    await files?.read()
    byId = mergeAll((await dynamic?.()) ?? [])
    reportNew()
  }

  function mergeAll(others: readonly RegisteredTool[]): Map<string, RegisteredTool> {
    const custom = files?.last()
    problems = [...(options.problems ?? []), ...(custom?.problems ?? [])]
    return mergeTools([...options.tools, ...(custom?.tools ?? []), ...others], override, problems)
  }

  function reportNew(): void {
    for (const problem of problems) {
      if (reported.has(textOf(problem))) continue
      reported.add(textOf(problem))
      onProblem?.(problem)
    }
  }

  function prepare(entry: RegisteredTool, scope: ToolScope): Promise<OfferedTool> {
    const forAgents = prepared.get(entry.tool) ?? new Map<string, Prepared>()
    prepared.set(entry.tool, forAgents)
    const known = forAgents.get(scope.agent)
    const rules = known?.rules()
    if (known && (rules === undefined || rules === JSON.stringify(effectiveRules(scope.policy))))
      return known.tool
    let read: string | undefined
    const onRules = (json: string) => {
      read = json
    }
    const tool = prepareTool(entry, scope, { onRules })
    forAgents.set(scope.agent, { tool, rules: () => read })
    return tool
  }

  /**
   * Prepares a tool and returns it, with the reason if it is not offered. `against` is a reason that is already known.
   */
  async function consider(entry: RegisteredTool, scope: ToolScope, against: string | undefined) {
    let reason = against
    try {
      const tool = await prepare(entry, scope)
      const { providers } = tool.definition
      // The provider of an AI SDK model object has a name such as `openai.responses`.
      const named = scope.model && [scope.model.providerID, scope.model.providerID.split(".", 1)[0] ?? ""]
      if (reason === undefined && providers && named && !named.some((id) => providers.includes(id))) {
        reason = `it is offered only to models from ${providers.join(", ")}`
      }
      return { tool, reason }
    } catch (error) {
      const message = `the tool "${entry.tool.id}" cannot be offered: ${errorLine(error)}`
      report(problems, entry, message)
      reportNew()
      return { tool: undefined, reason: message }
    }
  }

  return {
    ids: () => [...byId.keys()],
    get: (id) => byId.get(id),
    idOf,
    aliasOf,
    async tools(scope) {
      const listed = listedFrom
      await refresh()
      const from = files?.last() ?? "none"
      // Does not prepare tools that are not offered, because creating their schemas would slow down every start.
      const possible = [...byId.values()].filter((entry) => rules.against(entry, scope) === undefined)
      const considered = await Promise.all(possible.map((entry) => consider(entry, scope, undefined)))
      const offered = considered.flatMap(({ tool, reason }) => (tool && reason === undefined ? [tool] : []))
      listed.set(offered, from)
      return offered
    },
    unavailableReason(name, scope) {
      const id = idOf(name)
      return id === undefined ? undefined : rules.unavailableReason(id, scope)
    },
    async list(scope) {
      await refresh()
      return Promise.all(
        [...byId.values()].map(async (entry): Promise<ToolListing> => {
          const { tool, reason } = await consider(entry, scope, rules.against(entry, scope))
          const { id, alias } = entry.tool
          return {
            id,
            alias: alias !== undefined && idOf(alias) === id ? alias : undefined,
            description: tool?.definition.description ?? "",
            parameters: tool?.schema ?? {},
            source: describeSource(entry.source),
            offered: reason === undefined,
            reason,
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

/** Returns the tool that a user or client calls by this id or alias. */
export function findListing(name: string, tools: readonly ToolListing[]): ToolListing | undefined {
  return tools.find(({ id }) => id === name) ?? tools.find(({ alias }) => alias === name)
}

function textOf({ file, message }: RegistryProblem): string {
  return `${file}: ${message}`
}

/** Returns the tools keyed by id, in the given order. Adds omitted tools to `problems`. */
function mergeTools(
  tools: readonly RegisteredTool[],
  override: ReadonlySet<string>,
  problems: RegistryProblem[],
): Map<string, RegisteredTool> {
  const byId = new Map<string, RegisteredTool>()
  for (const entry of tools) {
    const { id } = entry.tool
    if (permissionNames.has(id)) {
      report(
        problems,
        entry,
        `"${id}" is the name of a permission and cannot be the name of a tool. Rename the tool.`,
      )
      continue
    }
    const first = byId.get(id)
    if (first && !override.has(id)) {
      report(
        problems,
        entry,
        `there are two tools named "${id}": one from ${describeSource(first.source)}, one from ` +
          `${describeSource(entry.source)}. The first tool is kept. Rename the second tool, or add ` +
          `"override": ["${id}"] to the configuration to let it replace the first.`,
      )
      continue
    }
    byId.set(id, entry)
  }
  return byId
}

/**
 * Names of permissions that do not belong to tools. No tool may have one of these names, because existing rules for
 * these permissions would apply to the tool, and some of these rules allow everything.
 */
const permissionNames: ReadonlySet<string> = new Set(
  "todo external_directory doom_loop network private_network sandbox_escape mcp_sampling".split(" "),
)

/** Decides which tools are offered. The reasons are shown to users and models. */
function createOfferRules(disabled: ReadonlySet<string>, aliasOf: Registry["aliasOf"]) {
  function ruledOut(id: string, scope: ToolScope): string | undefined {
    const alias = aliasOf(id)
    if (disabled.has(id) || (alias && disabled.has(alias.name)))
      return 'it is disabled by the "tools" setting in the configuration'
    const unavailable = own(scope.unavailable, id)
    if (unavailable !== undefined) return unavailable
    if (!isOffered(scope.policy, permissionOf(id), alias))
      return `the permission rules deny it for the agent ${scope.agent}`
    const served = serves[id]
    return served !== undefined && ruledOut(served, scope) !== undefined
      ? `it is used only with ${served}, which is not offered`
      : undefined
  }

  return {
    /**
     * Returns the reason why a tool is not offered (rules, config or circumstances), or undefined if it can be offered.
     */
    against(entry: RegisteredTool, scope: ToolScope): string | undefined {
      const { id } = entry.tool
      if (internal.has(id)) return "it handles malformed calls and is not offered to models"
      return ruledOut(id, scope) ?? entry.unavailableReason?.(scope)
    },
    /**
     * Returns a reason that comes from the rules, the config or `scope.unavailable`, or undefined for internal tools.
     */
    unavailableReason: (id: string, scope: ToolScope) => (internal.has(id) ? undefined : ruledOut(id, scope)),
  }
}

/** Ids of tools that the engine calls itself. */
const internal: ReadonlySet<string> = new Set(["invalid"])

/** Tools that are useful only together with another tool. Maps the id of each tool to the other tool's id. */
const serves: Readonly<Record<string, string>> = Object.assign(Object.create(null), { job: "bash" })
