import type { Command } from "commander"
import { builtinAgents } from "../../agent/builtin.ts"
import { instructionFiles } from "../../config/instructions.ts"
import { configJsonSchema } from "../../config/schema.ts"
import { wholeName } from "../../config/shown-name.ts"
import { namesCredential } from "../../engine/secrets.ts"
import { defaultRules } from "../../permission/rules.ts"
import type { Rule } from "../../schema/permission.ts"
import { loadSkills } from "../../skill/skill.ts"
import { isRecord } from "../../util/json.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { trustedSkillFiles } from "../workspace/definitions.ts"
import { sandboxOptions } from "../workspace/engine.ts"
import { agentRulesets, describeRule, ruleOrigin, shadowedConfigRules } from "../workspace/rules.ts"
import { type FormatFlags, openWorkspace, type Workspace } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, projectFlags } from "./flags.ts"

/** Defines `tackle config` and its subcommands. */
export function defineConfig(config: Command): void {
  projectFlags(config.command("show"))
    .description("show the merged configuration, with its files and rules")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(showConfig)
  config
    .command("schema")
    .description("print the JSON Schema for config files, for use in editors")
    .action(showSchema)
}

/** Runs `tackle config show`, which prints the effective config and lists its files. Masks headers and credentials. */
export async function showConfig(flags: FormatFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  const { config: loaded } = workspace
  const { files, permission, projectTrusted, ignored } = loaded
  const config = workspace.hide(masked(loaded.config))
  const untrusted = permission.untrusted.map((rule) => ({ ...rule, ...standing(rule) }))
  const rules = {
    defaults: defaultRules(),
    ...permission,
    untrusted,
    agents: loaded.agentPermission,
    projectAgents: loaded.projectAgentPermission,
    environmentAgents: loaded.environmentAgentPermission,
  }
  const shadowed = shadowedConfigRules(workspace)
  const instructions = instructionFiles(workspace)
  const skills = await skillsOf(workspace)
  const agents = Object.keys(loaded.config.agent ?? {}).map((name) => ({
    name,
    source: loaded.origin(["agent", name]),
  }))
  if (flags.format === "json")
    return printJson({
      files,
      projectTrusted,
      ignored,
      instructions,
      skills,
      agents,
      config,
      permission: rules,
      shadowed,
    })

  printLine(files.length === 0 ? "No config files." : "Files, lowest precedence first:")
  for (const { path, kind, scope } of files) printLine(`  ${wholeName(path)} (${kind}, ${scope})`)
  if (ignored.length > 0) printLine(`Ignored, because this project is not trusted: ${ignored.join("; ")}`)
  if (instructions.length > 0) printLine("Instructions for the model, nearest last:")
  for (const path of instructions) printLine(`  ${wholeName(path)}`)
  if (skills.length > 0) printLine("Skills, lowest precedence first:")
  for (const { name, path, counts } of skills)
    printLine(
      `  ${wholeName(path)} (${wholeName(name)}${counts ? "" : ", ignored, because a later skill has the same name"})`,
    )
  printLine("Agents:")
  const changed = agents.map(({ name }) => name)
  const builtin = builtinAgents().filter(({ name, hidden }) => !hidden && !changed.includes(name))
  for (const { name } of builtin) printLine(`  ${name} (built in)`)
  for (const { name, source } of agents)
    printLine(`  ${wholeName(name)}${source ? ` (${wholeName(`${source.file}:${source.line}`)})` : ""}`)
  if (isRecord(config) && Object.keys(config).length > 0) printLine(`\n${JSON.stringify(config, null, 2)}`)
  printLine("\nRules (the last match decides, but your own deny rules are final):")
  for (const rule of [
    ...rules.defaults,
    ...permission.user,
    ...permission.project,
    ...permission.untrusted,
    ...permission.environment,
    ...agentRulesets(workspace).flat(),
  ]) {
    const by = shadowed.find((entry) => entry.rule === rule)?.by
    const { reason } = permission.untrusted.includes(rule) ? standing(rule) : {}
    const note = reason ?? (by ? `never applies, because ${ruleOrigin(by)} takes precedence` : undefined)
    printLine(`  ${describeRule(rule, 5)}${note === undefined ? "" : `   ${note}`}`)
  }
  if (sandboxOptions(workspace.config.config.sandbox, {}).sandboxAllow === "auto")
    printLine(
      '\nsandbox.allow is "auto", so commands in a working sandbox run without asking. Exceptions are commands and files that match a rule narrower than *, the network, paths outside the project, protected files and secrets.',
    )
}

/**
 * Returns the user's skills and the project's trusted skills, in order of increasing precedence. `counts` is false for
 * a skill that is replaced by a later skill with the same name.
 */
async function skillsOf(workspace: Workspace): Promise<{ name: string; path: string; counts: boolean }[]> {
  const found: { name: string; path: string }[] = []
  for (const file of trustedSkillFiles(workspace)) {
    const [name] = (await loadSkills([file])).skills.keys()
    if (name !== undefined) found.push({ name, path: file.path })
  }
  const last = new Map(found.map(({ name, path }) => [name, path]))
  return found.map(({ name, path }) => ({ name, path, counts: last.get(name) === path }))
}

/** Runs `tackle config schema`. */
export async function showSchema(): Promise<void> {
  printLine(JSON.stringify(configJsonSchema(), null, 2))
}

/**
 * Returns whether a rule from an untrusted file applies, and the reason if it does not. Untrusted files can only add
 * restrictions.
 */
function standing({ action }: Rule): { counts: boolean; reason?: string } {
  if (action !== "allow") return { counts: true }
  return { counts: false, reason: "ignored, because an untrusted file can only add restrictions" }
}

function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked)
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => {
      const isSecret = key === "headers" || namesCredential(key)
      return [key, isSecret ? "(set)" : masked(entry)]
    }),
  )
}
