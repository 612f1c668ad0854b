import { type JsonSchema, toJsonSchema } from "../model/schema.ts"
import type { Policy } from "../permission/policy.ts"
import { isOffered } from "../permission/policy.ts"
import type { ModelRef } from "../schema/message.ts"
import type { Definition, Info } from "../tool/tool.ts"
import { within } from "../util/abort.ts"
import { errorMessage } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import type { LiveToolFiles, LoadedTools } from "./live-tool-files.ts"

/** Where a tool comes from: `path` of a custom file, `server` of the config, name of a plugin. */
export type ToolSource =
  | { kind: "builtin" }
  | { kind: "library" }
  | { kind: "file"; path: string }
  | { kind: "mcp"; server: string }
  | { kind: "plugin"; plugin: string }

/** A tool with its origin, before it is prepared for anybody. */
export interface RegisteredTool {
  tool: Info
  /** The name that its author gave it, where it is offered by another. */
  ownName?: string | undefined
  source: ToolSource
  /** Why it is not offered here whatever the rules say: a missing back end, a flag that is off. */
  unavailable?: (scope: ToolScope) => string | undefined
}

/** Something that kept a tool out. Shown to the person; never stops the others. */
export interface RegistryProblem {
  /** File of the tool that was left out. */
  file: string
  message: string
}

/** Whom tools are listed for. */
export interface ToolScope {
  /** Absent where a person calls by hand: nothing is then kept back for the sake of a model. */
  model?: ModelRef
  agent: string
  policy: Policy
  /** Tools that cannot work here whatever the rules say, with the reason: no depth left, nobody to ask. */
  lacking?: Readonly<Record<string, string>>
}

/** A tool as one agent and model get it. */
export interface OfferedTool {
  id: string
  /** The name that its author gave it, where that is another: people who read the tool call it so. */
  ownName?: string
  definition: Definition
  /** JSON Schema of the parameters, as sent. */
  schema: JsonSchema
  source: ToolSource
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

/** Ids that the engine itself answers and no model is offered. */
const internal: ReadonlySet<string> = new Set(["invalid"])

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
  let prepared = new WeakMap<Info, Map<string, Promise<OfferedTool>>>()
  let listedFrom = new WeakMap<readonly OfferedTool[], LoadedTools | "none">()
  let problems: RegistryProblem[] = []
  let byId = mergeAll([])
  const told = new Set(problems.map(textOf))

  async function refresh(): Promise<void> {
    await files?.read()
    byId = mergeAll((await living?.()) ?? [])
    tell()
  }

  function mergeAll(others: readonly RegisteredTool[]): Map<string, RegisteredTool> {
    const custom = files?.last()
    problems = [...(options.problems ?? []), ...(custom?.problems ?? [])]
    return merge([...options.tools, ...(custom?.tools ?? []), ...others], override, problems)
  }

  function tell(): void {
    for (const problem of problems) {
      if (told.has(textOf(problem))) continue
      told.add(textOf(problem))
      onProblem?.(problem)
    }
  }

  function prepare(entry: RegisteredTool, agent: string): Promise<OfferedTool> {
    const forAgents = prepared.get(entry.tool) ?? new Map<string, Promise<OfferedTool>>()
    prepared.set(entry.tool, forAgents)
    const tool = forAgents.get(agent) ?? initialise(entry, agent, options.initLimitMs ?? defaultInitLimitMs)
    forAgents.set(agent, tool)
    return tool
  }

  function reasonAgainst(entry: RegisteredTool, scope: ToolScope): string | undefined {
    const { id } = entry.tool
    if (internal.has(id)) return "answers malformed calls; no model is offered it"
    return ruledOut(id, scope) ?? entry.unavailable?.(scope)
  }

  function ruledOut(id: string, scope: ToolScope): string | undefined {
    if (options.disabled?.has(id)) return "switched off in the configuration (tools)"
    const lacking = scope.lacking?.[id]
    if (lacking !== undefined) return lacking
    if (!isOffered(scope.policy, permissionOf(id)))
      return `no rule could ever allow it for the agent ${scope.agent}`
    const served = serves[id]
    return served !== undefined && ruledOut(served, scope) !== undefined
      ? `it only serves ${served}, which is not offered`
      : undefined
  }

  /** `against`: why it is not offered, as far as that is known before it is ready. */
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
      const possible = [...byId.values()].filter((entry) => reasonAgainst(entry, scope) === undefined)
      const considered = await Promise.all(possible.map((entry) => consider(entry, scope, undefined)))
      const offered = considered.flatMap(({ tool, reason }) => (tool && reason === undefined ? [tool] : []))
      listed.set(offered, from)
      return offered
    },
    withheld(id, scope) {
      const entry = byId.get(id)
      return entry && !internal.has(id) ? ruledOut(id, scope) : undefined
    },
    async list(scope) {
      await refresh()
      return Promise.all(
        [...byId.values()].map(async (entry): Promise<ToolListing> => {
          const { tool, reason } = await consider(entry, scope, reasonAgainst(entry, scope))
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

/** The permission type that stands for a tool: most have their own id. */
export function permissionOf(id: string): string {
  return permissions[id] ?? id
}

const permissions: Readonly<Record<string, string>> = Object.assign(Object.create(null), {
  write: "edit",
  apply_patch: "edit",
  todowrite: "todo",
  todoread: "todo",
})

/** Tools that have nothing to do without another one. */
const serves: Readonly<Record<string, string>> = Object.assign(Object.create(null), { job: "bash" })

/** A source in words, for lists and messages. */
export function describeSource(source: ToolSource): string {
  if (source.kind === "file") return source.path
  if (source.kind === "plugin") return `plugin ${source.plugin}`
  return source.kind === "mcp" ? `mcp ${source.server}` : source.kind
}

/** A tool that belongs to the host and is in no registry, made ready like the built-in ones. */
export function prepareOwn(tool: Info, agent: string): Promise<OfferedTool> {
  return initialise({ tool, source: { kind: "builtin" } }, agent, defaultInitLimitMs)
}

const defaultInitLimitMs = 10_000

async function initialise(
  { tool, source, ownName }: RegisteredTool,
  agent: string,
  limitMs: number,
): Promise<OfferedTool> {
  const ready = tool.init({ agent: { name: agent } }).then((definition) => ({ definition }))
  const inTime = await within(ready, limitMs)
  if (!inTime) throw new TypeError(`it was not ready within ${limitMs} ms`)
  const { definition } = inTime
  checkDefinition(definition)
  const schema = definition.jsonSchema ?? toJsonSchema(definition.parameters)
  return { id: tool.id, definition, schema, source, ...(ownName === undefined ? {} : { ownName }) }
}

/** Custom tools are code of other people: their word on types is checked. */
function checkDefinition(definition: unknown): void {
  const { description, parameters, execute } = isRecord(definition) ? definition : {}
  if (typeof description !== "string" || description.trim() === "")
    throw new TypeError('it has no "description", a text that tells the model what the tool does')
  if (typeof execute !== "function") throw new TypeError('it has no function "execute"')
  if (typeof parameters !== "object" || parameters === null || !("_zod" in parameters))
    throw new TypeError('its "parameters" are no schema of zod 4, such as z.object({ … })')
}

/**
 * Permissions that are no tool's id. Rules for them were not written for a tool of that name, and some allow all: it is
 * left out.
 */
const permissionNames: ReadonlySet<string> = new Set(
  "todo external_directory doom_loop network private_network sandbox_escape".split(" "),
)

function merge(
  tools: readonly RegisteredTool[],
  override: ReadonlySet<string>,
  problems: RegistryProblem[],
): Map<string, RegisteredTool> {
  const byId = new Map<string, RegisteredTool>()
  for (const entry of tools) {
    const { id } = entry.tool
    if (permissionNames.has(id)) {
      report(problems, entry, `"${id}" is the name of a permission and cannot be that of a tool. Rename it.`)
      continue
    }
    const first = byId.get(id)
    if (first && !override.has(id)) {
      report(
        problems,
        entry,
        `there are two tools named "${id}": one from ${describeSource(first.source)}, one from ${describeSource(entry.source)}. ` +
          `The first is kept. Rename the second, or put "override": ["${id}"] into the configuration to let it replace the first.`,
      )
      continue
    }
    byId.set(id, entry)
  }
  return byId
}

function textOf({ file, message }: RegistryProblem): string {
  return `${file}: ${message}`
}

function report(problems: RegistryProblem[], entry: RegisteredTool, message: string): void {
  const file = describeSource(entry.source)
  if (!problems.some((known) => known.file === file && known.message === message))
    problems.push({ file, message })
}
