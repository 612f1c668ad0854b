import type { Rule } from "../schema/permission.ts"
import { type ConfigNode, withoutRepeats } from "./node.ts"
import { parseConfig } from "./parse.ts"
import { takeRules } from "./rules.ts"
import { sectionNames } from "./schema.ts"

/** A setting in a config file. */
export interface EnabledSetting {
  /**
   * The key path, such as `shell` or `provider.own.options.baseURL`. For a rule, `permission` or
   * `agent.<name>.permission`.
   */
  key: string
  /** The value in the file, before substitution. For a rule, its pattern. */
  value: unknown
  rule?: Rule
  /** The effect of the setting, if it is not obvious from the key. */
  note?: string
}

/**
 * Lists everything that a config file would enable, in file order but with rules first. Does not shorten or substitute
 * values, because the user decides whether to trust the file. Throws `ConfigError` if the text cannot be parsed.
 */
export async function enabledSettings(path: string, text: string): Promise<EnabledSetting[]> {
  const { rest, rules } = takeRules((await parseConfig(path, text)).tree)
  const settings = leaves(withoutRepeats(rest), "").filter(({ key }) => key !== "$schema")
  return [
    ...rules.permission.map((rule) => ofRule("permission", rule)),
    ...[...rules.agents].flatMap(([name, own]) =>
      own.map((rule) => ofRule(`agent.${name}.permission`, rule)),
    ),
    ...settings.map((setting) => ({ ...setting, ...noteOn(setting) })),
  ]
}

function ofRule(key: string, rule: Rule): EnabledSetting {
  return { key, value: rule.pattern, rule }
}

/** Returns every value with its path. Does not split lists of plain values. */
function leaves(node: ConfigNode, path: string): { key: string; value: unknown }[] {
  if (node.kind === "scalar") return [{ key: path, value: node.value }]
  if (node.kind === "array") {
    const values = node.items.flatMap((item) => (item.kind === "scalar" ? [item.value] : []))
    if (values.length === node.items.length) return [{ key: path, value: values }]
    return node.items.flatMap((item, index) => leaves(item, `${path}[${index}]`))
  }
  if (node.entries.length === 0 && path !== "") return [{ key: path, value: {} }]
  return node.entries.flatMap(({ key, value }) => leaves(value, path === "" ? key : `${path}.${key}`))
}

const notes: readonly (readonly [key: RegExp, note: string])[] = [
  [/^shell$/, "runs every command"],
  [/^sandbox(?:\.mode)?$/, "controls whether commands run in a sandbox"],
  [/^sandbox\.allow$/, "runs commands in the sandbox without asking"],
  [/^pass_environment$/, "passes these variables to commands and custom tools, even if they contain keys"],
  [/^secrets$/, "masks the values of these variables"],
  [/^override$/, "built-in tools that custom tools may replace"],
  [/^plugin/, "code that runs with your permissions; packages are trusted separately (npm:…)"],
  [/^tools\./, "makes this tool available or unavailable"],
  [/^instructions$/, "sends the text of these files to the model"],
  [/^agent\..*\.prompt$/, "instructions for the agent"],
  [/^command\..*\.template$/, "the command's prompt; !`…` runs shell commands"],
  [/^provider\..*\.(?:baseURL|options\.api)$/, "receives the prompts to this provider and its API key"],
  [/^provider\..*\.npm$/, "a package whose code connects to the provider"],
  [/^provider\..*\.headers\./, "headers that are sent with every request to this provider"],
  [/^mcp\..*\.command$/, "a program that runs outside the sandbox"],
  [/^mcp\..*\.environment\./, "an environment variable of that program"],
  [/^mcp\..*\.url$/, "a server whose tools are offered; it receives the arguments of their calls"],
  [/^mcp\..*\.headers\./, "headers that are sent to that server"],
  [/^mcp\..*\.oauth\./, "controls how you sign in to that server"],
  [/^search\.url$/, "receives all searches"],
]

function noteOn({ key, value }: { key: string; value: unknown }): { note?: string } {
  const known = sectionNames.includes(key.split(/[.[]/, 1)[0] ?? "")
  const found = notes.find(([pattern]) => pattern.test(key))?.[1]
  const put = JSON.stringify(value).matchAll(/\{(env|file):([^{}"]+)\}/g)
  const substitutions = [...put].map(([, kind, name]) =>
    kind === "env" ? `includes the variable ${name?.split(":-", 1)[0]}` : `includes the file ${name}`,
  )
  const all = [...(found ? [found] : []), ...substitutions, ...(known ? [] : ["not used by Tackle"])]
  return all.length > 0 ? { note: all.join("; ") } : {}
}
