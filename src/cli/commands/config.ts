import { configJsonSchema } from "../../config/schema.ts"
import { defaultRules } from "../../permission/defaults.ts"
import type { Rule } from "../../schema/permission.ts"
import { isRecord } from "../../util/json.ts"
import { printJson, printLine } from "../print.ts"
import { type FormatFlags, openPlace } from "../setup.ts"
import { placeOfRule, shadowedConfigRules } from "../shadowed-rules.ts"

/** `tackle config show`: what counts, and where it stands. Keys and headers of providers are masked. */
export async function showConfig(flags: FormatFlags): Promise<void> {
  const place = await openPlace(flags)
  const { config: loaded } = place
  const { files, permission, agentPermission, projectTrusted, ignored } = loaded
  const config = masked(loaded.config)
  const rules = { defaults: defaultRules(), ...permission, agents: agentPermission }
  const shadowed = shadowedConfigRules(place)
  if (flags.format === "json")
    return printJson({ files, projectTrusted, ignored, config, permission: rules, shadowed })

  printLine(files.length === 0 ? "No config files." : "Files, the later ones over the earlier:")
  for (const { path, kind, scope } of files) printLine(`  ${path} (${kind}, ${scope})`)
  if (ignored.length > 0) printLine(`Not counted, since this project is not trusted: ${ignored.join("; ")}`)
  if (isRecord(config) && Object.keys(config).length > 0) printLine(`\n${JSON.stringify(config, null, 2)}`)
  printLine("\nRules, the last that matches decides:")
  const agents = Object.values(agentPermission).flat()
  for (const rule of [
    ...rules.defaults,
    ...permission.user,
    ...permission.project,
    ...permission.untrusted,
    ...permission.environment,
    ...agents,
  ]) {
    const by = shadowed.find((entry) => entry.rule === rule)?.by
    printLine(`  ${describeRule(rule)}${by ? `   never decides: ${placeOfRule(by)} does` : ""}`)
  }
}

/** `tackle config schema`. */
export async function showSchema(): Promise<void> {
  printLine(JSON.stringify(configJsonSchema(), null, 2))
}

function describeRule(rule: Rule): string {
  const place = placeOfRule(rule)
  return `${rule.action.padEnd(5)} ${rule.permission}: ${rule.pattern}${place === "" ? "" : `   (${place})`}`
}

const secretKey = /key|token|secret|password|authorization|headers/i

function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, secretKey.test(key) ? "(set)" : masked(entry)]),
  )
}
