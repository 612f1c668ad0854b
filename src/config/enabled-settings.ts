import type { Rule } from "../schema/permission.ts"
import { type ConfigNode, withoutRepeats } from "./node.ts"
import { parseConfig } from "./parse.ts"
import { takeRules } from "./rules.ts"
import { sectionNames } from "./schema.ts"

/** One thing that a config file says. */
export interface EnabledSetting {
  /** Such as `shell` or `provider.own.options.baseURL`; of a rule, `permission` or `agent.<name>.permission`. */
  key: string
  /** As it is written, before anything is put into it. */
  value: unknown
  rule?: Rule
  /** What comes of it, where the name alone does not say so. */
  note?: string
}

/**
 * All that a config file would do once it counts, rules first, in written order. Nothing is left out, shortened or
 * substituted: it is what a person says yes to. Throws `ConfigError` for a text that cannot be parsed.
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

/** Every value with its path. Lists of plain values stay whole. */
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
  [/^shell$/, "the program that runs every command"],
  [/^sandbox$/, "whether commands are confined"],
  [/^pass_environment$/, "commands get these variables though they hold keys"],
  [/^secrets$/, "the values of these variables are hidden"],
  [/^override$/, "tools whose position others may take"],
  [/^plugin/, "code that runs with your rights; a package is trusted by itself (npm:…)"],
  [/^tools\./, "whether this tool is there"],
  [/^instructions$/, "their text is sent to the model"],
  [/^agent\..*\.prompt$/, "what the agent is told to do"],
  [/^command\..*\.template$/, "what the model is told when you write the command; lines in !`…` are run"],
  [/^provider\..*\.(?:baseURL|api)$/, "all that is said to the model, and the key, goes there"],
  [/^provider\..*\.npm$/, "a package whose code talks to the provider"],
  [/^provider\..*\.headers\./, "is sent with every request"],
  [/^mcp\..*\.command$/, "a program that is started, outside the sandbox"],
  [/^mcp\..*\.environment\./, "a variable of that program"],
  [/^mcp\..*\.url$/, "a server whose tools are offered; what they are called with goes there"],
  [/^mcp\..*\.headers\./, "is sent to that server"],
  [/^mcp\..*\.oauth\./, "is how you sign in to that server"],
  [/^search\.url$/, "searches go there"],
]

function noteOn({ key, value }: { key: string; value: unknown }): { note?: string } {
  const known = sectionNames.includes(key.split(/[.[]/, 1)[0] ?? "")
  const found = notes.find(([pattern]) => pattern.test(key))?.[1]
  const put = JSON.stringify(value).matchAll(/\{(env|file):([^{}"]+)\}/g)
  const substitutions = [...put].map(([, kind, name]) =>
    kind === "env" ? `puts in the variable ${name}` : `puts in the text of ${name}`,
  )
  const all = [...(found ? [found] : []), ...substitutions, ...(known ? [] : ["Tackle does not use this"])]
  return all.length > 0 ? { note: all.join("; ") } : {}
}
