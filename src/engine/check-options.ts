import * as z from "zod"
import { checkTree, type TreeSchema } from "../config/check.ts"
import type { Problem } from "../config/errors.ts"
import { type ConfigNode, fromPlain, type ObjectNode } from "../config/node.ts"
import { plainRules } from "../config/rules.ts"
import { agentFields, sectionSchema } from "../config/schema.ts"
import { knownPermissions, nearestPermission } from "../permission/permission-names.ts"
import { permissionType } from "../permission/rules.ts"
import { ModelRef } from "../schema/message.ts"
import { Rule } from "../schema/permission.ts"
import { UsageError } from "../util/errors.ts"
import { nearNames } from "../util/similarity.ts"
import { withoutRules } from "./definitions.ts"
import { optionNames, type TackleOptions } from "./options.ts"

/**
 * Throws `UsageError` if an option is unknown at any level, or if a value in an option that has the format of a config
 * section is invalid. Compilers do not check JavaScript programs.
 */
export function checkOptions(given: TackleOptions): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(optionNames, name))
  if (unknown !== undefined) {
    const [near] = nearNames(unknown, Object.keys(optionNames), 1)
    const hint = near === undefined ? "" : ` Did you mean ${near}?`
    throw new UsageError(`createTackle has no option ${JSON.stringify(unknown)}.${hint} See docs/library.md.`)
  }
  const { permission, agents, ...others } = given
  const fields = Object.fromEntries(Object.entries(others).filter(([name]) => Object.hasOwn(checked, name)))
  const tree = treeOf({ ...fields, agents: withoutRules(agents) })
  const problems: Problem[] = checkTree(tree, optionSchema)
  if (permission !== undefined) problems.push(...plainRules(permission, "permission").problems)
  for (const [name, agent] of Object.entries(agents ?? {}))
    if (agent?.permission !== undefined)
      problems.push(...plainRules(agent.permission, `agents.${name}.permission`).problems)
  if (problems.length > 0)
    throw new UsageError(`createTackle: ${problems.map(({ text }) => text).join("\n")} See docs/library.md.`)
}

/**
 * Throws `UsageError` if a permission in the options is probably misspelled: it is not a permission or the id of a tool,
 * but similar to a permission.
 */
export function checkPermissionNames(
  { permission, agents, mcp }: TackleOptions,
  tools: readonly string[],
): void {
  const sections = [permission, ...Object.values(agents ?? {}).map((agent) => agent.permission)]
  for (const section of sections)
    for (const { permission: name } of section === undefined ? [] : plainRules(section, "permission").rules) {
      const isTool = tools.includes(name) || Object.keys(mcp ?? {}).some((id) => name.startsWith(`${id}_`))
      if (/[*?]/.test(name) || isTool || knownPermissions.includes(permissionType(name))) continue
      const near = nearestPermission(name)
      if (near !== undefined)
        throw new UsageError(
          `createTackle: the permission "${name}" does not exist, and no tool has this name. Did you mean "${near}"?`,
        )
    }
}

const position = { file: "", line: 1, column: 1 }

function treeOf(value: object): ObjectNode {
  const node: ConfigNode = fromPlain(value, position)
  return node.kind === "object" ? node : { kind: "object", position, entries: [] }
}

const number = () => z.custom<number>((value) => typeof value === "number" && value >= 0, "expected a number")
const numbers = (names: string) =>
  z.strictObject(Object.fromEntries(names.split(" ").map((name) => [name, number().optional()])))

const ruleLists = () => z.record(z.string(), z.array(Rule))

/** Schemas of the options whose values are checked. */
const checked: Readonly<Record<string, () => z.ZodType>> = {
  agents: () => {
    const { permission: _, ...fields } = agentFields()
    const problem = z.string().optional()
    return z.record(z.string(), z.strictObject({ ...fields, model: ModelRef.optional(), problem }))
  },
  agentRules: ruleLists,
  projectAgentRules: ruleLists,
  environmentAgentRules: ruleLists,
  providers: () => sectionSchema("provider"),
  commands: () => sectionSchema("command"),
  experimental: () => sectionSchema("experimental"),
  mcp: () => sectionSchema("mcp"),
  lsp: () => sectionSchema("lsp"),
  formatter: () => sectionSchema("formatter"),
  search: () => sectionSchema("search"),
  toolSearch: () => sectionSchema("tool_search"),
  tenants: () => sectionSchema("tenants"),
  sandbox: () => z.enum(["auto", "require", "off"]),
  sandboxAllow: () => z.literal("auto"),
  limits: () =>
    z.strictObject({
      output: numbers("maxLines maxBytes").optional(),
      spillBytes: number().optional(),
      retentionDays: number().optional(),
      retention: numbers("days megabytes").optional(),
      stream: numbers("firstByteMs idleMs").optional(),
      retry: numbers("maxAttempts ceilingMs").optional(),
      plugin: numbers("loadMs hookMs").optional(),
      subagent: numbers("depth timeMs steps tokens").optional(),
    }),
}

function schemaOf(names: readonly string[]): z.ZodType {
  const shape = Object.entries(checked).flatMap(([name, make]) =>
    names.includes(name) ? [[name, make().optional()] as const] : [],
  )
  return z.strictObject(Object.fromEntries(shape))
}

const optionSchema: TreeSchema = {
  schema: schemaOf,
  json: () => z.toJSONSchema(schemaOf(Object.keys(checked)), { io: "input", unrepresentable: "any" }),
}
