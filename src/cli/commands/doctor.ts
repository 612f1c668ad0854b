import { accessSync, constants, existsSync, mkdirSync } from "node:fs"
import type { Command } from "commander"
import { describeProblem } from "../../config/errors.ts"
import { instructionFiles } from "../../config/instructions.ts"
import { trustKind } from "../../config/project-trust-items.ts"
import { wholeName } from "../../config/shown-name.ts"
import { dataPaths } from "../../engine/data-directory.ts"
import type { Tackle } from "../../engine/tackle.ts"
import { createCredentials } from "../../model/credentials.ts"
import { parseModelName } from "../../model/model.ts"
import { createModels } from "../../model/providers.ts"
import { planCommand } from "../../permission/shell/plan-command.ts"
import { probeSandbox } from "../../sandbox/probe.ts"
import { openSandbox, type Sandbox } from "../../sandbox/sandbox.ts"
import { historyPages } from "../../session/history.ts"
import { loadSkills } from "../../skill/skill.ts"
import type { Store } from "../../store/store.ts"
import { defaultSearchEngine } from "../../tools/search/default-search-engine.ts"
import type { FileQuery } from "../../tools/search/search-engine.ts"
import { errorMessage } from "../../util/errors.ts"
import { displayPath, isInside } from "../../util/paths.ts"
import { createProcessJournal } from "../../util/process-journal.ts"
import { counted } from "../../util/words.ts"
import { folded } from "../../view/visible.ts"
import { exitCode } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { trustedSkillFiles } from "../workspace/definitions.ts"
import { isWritable, problemsExceptServers, sandboxOptions, withTackle } from "../workspace/engine.ts"
import { agentRulesets, ruleOrigin, shadowedConfigRules } from "../workspace/rules.ts"
import { type FormatFlags, openWorkspaceWithProblems, type Workspace } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, projectFlags } from "./flags.ts"

/** Defines `tackle doctor`. */
export function defineDoctor(doctor: Command): void {
  projectFlags(doctor).addOption(formatFlag()).addOption(jsonFlag()).action(checkHealth)
}

interface Finding {
  check: string
  /** The result of a check. `warn` means that Tackle works, but with limitations. */
  status: "ok" | "warn" | "fail"
  detail: string
}

/**
 * Runs `tackle doctor`, which checks the installation, the configuration and the sandbox. Sets exit code 1 if a check
 * fails.
 */
export async function checkHealth(flags: FormatFlags): Promise<void> {
  const workspace = await openWorkspaceWithProblems(flags)
  const findings = [
    await check("node", () => ({ detail: `${process.version} (24.15 or newer is required)` })),
    await check("data directory", () => checkData(workspace)),
    await check("config", () => checkConfig(workspace)),
    await check("rules", () => checkRules(workspace)),
    await check("trust", () => checkTrust(workspace)),
    await check("search", () => checkSearch(workspace)),
    await check("shell", () => checkShell(workspace)),
    await check("shell parser", checkParser),
    await check("tools", () => checkTools(workspace)),
    await check("plugins", () => checkPlugins(workspace)),
    await check("mcp servers", () => checkServers(workspace)),
    await check("skills", () => checkSkills(workspace)),
    await check("agents", () => checkTexts(workspace, "agent")),
    await check("commands", () => checkTexts(workspace, "command")),
    await check("other programs", () => checkForeignConfig(workspace)),
    await check("model", () => checkModel(workspace)),
  ]
  const sandbox = openSandbox({
    mode: sandboxOptions(workspace.config.config.sandbox, {}).sandbox ?? "auto",
    platform: process.platform,
    architecture: process.arch,
    searchPath: workspace.environment.PATH ?? "",
    worktree: workspace.worktree,
  })
  findings.push(await check("sandbox", () => checkSandbox(sandbox)))
  const journal = createProcessJournal(dataPaths(workspace.dataDirectory).processes, (message) =>
    warn(message),
  )
  await journal.endOrphans()
  const probes = (await sandbox.state()).works ? await probeSandbox(sandbox, (tree) => journal.add(tree)) : []
  await sandbox.close()
  if (findings.some(({ status }) => status === "fail")) process.exitCode = exitCode.failed
  if (flags.format === "json") return printJson({ findings, probes })
  const marks = { ok: "✓", warn: "!", fail: "✗" }
  for (const { check: name, status, detail } of findings) {
    const lines = detail.split("\n").map((line) => indent + line)
    printLine(`${marks[status]} ${name.padEnd(14)} ${foldedHere(lines.join("\n")).slice(indent.length)}`)
  }
  if (probes.length > 0) printLine("\nSandbox checks, run just now:")
  for (const { attempt, outcome, detail } of probes)
    printLine(
      foldedHere(
        `${outcomeMarks[outcome]} ${outcome.padEnd(14)} ${attempt}${detail === undefined ? "" : ` (${detail})`}`,
      ),
    )
}

/** Indentation of details, as wide as the mark and the name of a check. */
const indent = " ".repeat(17)

function foldedHere(text: string): string {
  return process.stdout.isTTY ? folded(text, process.stdout.columns) : text
}

const outcomeMarks = { enforced: "✓", "not enforced": "✗", untested: "?" }

type Outcome = { status?: Finding["status"]; detail: string }

async function check(name: string, probe: () => Outcome | Promise<Outcome>): Promise<Finding> {
  try {
    return { check: name, status: "ok", ...(await probe()) }
  } catch (error) {
    return { check: name, status: "fail", detail: errorMessage(error) }
  }
}

async function checkData({ dataDirectory, environment }: Workspace): Promise<Outcome> {
  mkdirSync(dataDirectory, { recursive: true })
  if (!isWritable(dataDirectory))
    throw new Error(
      `${dataDirectory} cannot be written. Change its permissions, or set TACKLE_DATA_DIR to a writable directory.`,
    )
  const { database: file } = dataPaths(dataDirectory)
  const { TACKLE_DATABASE: database } = environment
  if (!database && !existsSync(file)) return { detail: dataDirectory }
  const { openDatabase } = await import("../../engine/open-storage.ts")
  const store = await openDatabase({ database, file })
  try {
    const damaged = await damagedRows(store)
    return damaged.length > 0 ? { status: "fail", detail: damaged.join("\n") } : { detail: dataDirectory }
  } finally {
    await store.close()
  }
}

/**
 * Returns one error for each damaged session: the error for its first damaged row. Checks only the 100 most recently
 * used sessions.
 */
async function damagedRows(store: Store): Promise<string[]> {
  const errors: string[] = []
  for (const { id } of await store.sessions()) {
    try {
      for await (const _ of historyPages((page) => store.messages(id, page)));
    } catch (error) {
      errors.push(errorMessage(error))
    }
  }
  return errors
}

/** Checks the config files and lists each problem on its own line. */
function checkConfig({ config, problems }: Workspace): Outcome {
  if (problems.length > 0)
    return {
      status: "fail",
      detail: problems.map((problem) => wholeName(describeProblem(problem))).join("\n"),
    }
  if (config.typos.length > 0)
    return {
      status: "warn",
      detail: [...config.typos, "These settings are ignored until you trust the project."].join("\n"),
    }
  const files = config.files.filter(({ path }) => trustKind(path) === "config")
  const names = files.map(({ path }) => path)
  return { detail: names.length === 0 ? "no files, so the defaults apply" : names.join(", ") }
}

function checkRules(workspace: Workspace): Outcome {
  const count = [...Object.values(workspace.config.permission), ...agentRulesets(workspace)].flat().length
  const told = shadowedConfigRules(workspace).map(
    ({ rule, by }) =>
      `${ruleOrigin(rule)} (${rule.action} ${rule.permission}: ${rule.pattern}) never applies, because ${ruleOrigin(by)} takes precedence`,
  )
  if (told.length > 0) return { status: "warn", detail: told.join("; ") }
  return {
    detail:
      count === 0 ? "defaults only" : `${counted(count, "rule")} in the config, applied after the defaults`,
  }
}

function checkTrust({ items, untrusted, worktree }: Workspace): Outcome {
  if (items.length === 0) return { detail: `nothing in ${worktree} needs trust` }
  if (untrusted.length === 0) return { detail: `everything in ${worktree} that needs trust is trusted` }
  return {
    status: "warn",
    detail: `not trusted: ${untrusted.map(({ path }) => path).join(", ")}. To trust them: tackle trust`,
  }
}

async function checkSearch({ directory }: Workspace): Promise<Outcome> {
  const { rgPath } = await import("@vscode/ripgrep")
  const query: FileQuery = {
    root: { path: directory, kind: "directory" },
    accepts: () => true,
    signal: AbortSignal.timeout(5_000),
    onUnreadable: () => {},
  }
  // Finding one file shows that the search engine works.
  for await (const _ of defaultSearchEngine.files(query)) break
  return existsSync(rgPath)
    ? { detail: "ripgrep" }
    : { status: "warn", detail: "ripgrep is not installed, so a slower search is used" }
}

function checkShell({ config }: Workspace): Outcome {
  const configured = config.config.shell
  if (configured !== undefined) {
    accessSync(configured, constants.X_OK)
    return { detail: configured }
  }
  const shell = ["/bin/bash", "/bin/sh"].find((path) => existsSync(path))
  if (!shell) throw new Error("neither /bin/bash nor /bin/sh exists")
  return { detail: shell }
}

async function checkParser(): Promise<Outcome> {
  const plan = await planCommand("ls -l | wc")
  if (plan.commands.length !== 2) throw new Error("the grammar cannot parse a simple pipeline")
  return { detail: "tree-sitter-bash" }
}

async function checkTools(workspace: Workspace): Promise<Outcome> {
  const work = async (tackle: Tackle): Promise<Outcome> => {
    const problems = tackle.problems()
    if (problems.length > 0)
      return { status: "warn", detail: problems.map(({ file, message }) => `${file}: ${message}`).join("; ") }
    const tools = await tackle.tools()
    return { detail: `${tools.filter(({ offered }) => offered).length} of ${tools.length} offered` }
  }
  return withTackle(workspace, work, { overrides: { onProblem: problemsExceptServers(workspace) } })
}

/** Lists the plugins in use. If any plugins cannot be loaded or are not trusted, lists only those plugins. */
async function checkPlugins(workspace: Workspace): Promise<Outcome> {
  const found = [...workspace.config.plugins.map(({ spec }) => spec), ...pluginFiles(workspace)]
  if (found.length === 0) return { detail: "none" }
  const problems = await withTackle(workspace, async (tackle) =>
    tackle.problems().filter(({ file }) => found.some((name) => file.includes(name))),
  )
  const open = workspace.untrusted.filter(({ kind }) => kind === "plugin").map(({ path }) => path)
  const told = [
    ...problems.map(({ file, message }) => `${file}: ${message}`),
    ...open.map((path) => `${path} is not trusted`),
  ]
  return told.length > 0
    ? { status: "warn", detail: told.join("; ") }
    : { detail: [...new Set(found)].join(", ") }
}

function pluginFiles({ items }: Workspace): string[] {
  return items.filter(({ kind }) => kind === "plugin").map(({ path }) => path)
}

/** Time limit in ms for starting each MCP server. */
const serverLimitMs = 10_000

/** Starts the MCP servers and reports their states. */
async function checkServers(workspace: Workspace): Promise<Outcome> {
  if (Object.keys(workspace.config.config.mcp ?? {}).length === 0) return { detail: "none" }
  const servers = await withTackle(
    workspace,
    (tackle) => tackle.mcpServers({ limitMs: serverLimitMs, signal: AbortSignal.timeout(2 * serverLimitMs) }),
    { overrides: { onProblem: problemsExceptServers(workspace) } },
  )
  const lines = servers.map(({ id, status, tools, problem }) =>
    status === "connected" ? `${id}: ${counted(tools.length, "tool")}` : `${id}: ${problem ?? status}`,
  )
  if (lines.length === 0) return { detail: "all disabled" }
  const failed = servers.some(({ status }) => status === "failed")
  return { status: failed ? "warn" : "ok", detail: lines.join("\n") }
}

async function checkSkills(workspace: Workspace): Promise<Outcome> {
  const { skills, problems } = await loadSkills(trustedSkillFiles(workspace))
  if (problems.length > 0)
    return { status: "warn", detail: problems.map(({ file, message }) => `${file}: ${message}`).join("; ") }
  return { detail: skills.size === 0 ? "none" : [...skills.keys()].join(", ") }
}

/** Lists the Markdown agents or commands in use, and Tackle's notes about their files. */
function checkTexts({ config, worktree, home }: Workspace, kind: "agent" | "command"): Outcome {
  const shown = (path: string) => displayPath(path, isInside(path, worktree) ? worktree : home)
  const taken = config.files.filter(({ path }) => trustKind(path) === kind).map(({ path }) => shown(path))
  const notes = config.notes.filter(({ file }) => trustKind(file) === kind).map(({ text }) => text)
  const detail = taken.length === 0 ? "no Markdown files" : taken.join(", ")
  return notes.length === 0 ? { detail } : { status: "warn", detail: [detail, ...notes].join("; ") }
}

/** Lists the files that Tackle uses from other programs, and the settings in these files that Tackle ignores. */
function checkForeignConfig(workspace: Workspace): Outcome {
  const { notes, typos } = workspace.config
  const warnings = workspace.config.warnings.filter((warning) => !typos.includes(warning))
  const detail = describeForeignConfig(foreignConfig(workspace))
  const told = warnings.length === 0 && notes.length > 0 ? ["see the agents and commands checks"] : warnings
  const settings = workspace.config.unusedSettings
  if (told.length + settings.length === 0) return { detail }
  const sentences = [
    detail,
    ...(told.length > 0 ? [`Warnings: ${told.join("; ")}`] : []),
    ...(settings.length > 0 ? [`Not used: ${settings.join("; ")}`] : []),
  ]
  return { status: "warn", detail: sentences.join(". ") }
}

async function checkSandbox({ mode, state }: Sandbox): Promise<Outcome> {
  const found = await state()
  if (found.works && found.limitation)
    return { status: "warn", detail: `${found.kind} (${mode}); ${found.limitation}` }
  if (found.works) return { detail: `${found.kind} (${mode})` }
  if (mode === "require")
    throw new Error(`a sandbox is required, but none works, so commands are refused. ${found.reason}`)
  return {
    status: "warn",
    detail: `commands run without a sandbox and are limited only by permission rules. ${found.reason}`,
  }
}

/** Checks the name, server URL and key of the model without sending a request. */
async function checkModel(workspace: Workspace): Promise<Outcome> {
  const { config, environment, dataDirectory } = workspace
  const { model: name, provider = {} } = config.config
  if (name === undefined)
    return { status: "warn", detail: "no model is configured, so Tackle asks for one or uses tackle/offline" }
  const credentials = createCredentials({ environment, authFile: dataPaths(dataDirectory).auth })
  const ref = parseModelName(name)
  const model = await createModels({ config: provider, credentials, environment }).get(ref)
  try {
    await model.language()
  } catch (error) {
    const isSignedIn = await withTackle(workspace, async (tackle) =>
      tackle.signIns().some(({ provider }) => provider === ref.providerID),
    )
    if (!isSignedIn) throw error
    return { detail: `${name}, with a plugin's sign-in method` }
  }
  return { detail: name }
}

/**
 * Paths of other programs' files that Tackle uses, keyed by the program's directory and then by the kind of setting.
 */
export type ForeignConfig = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>

/** Patterns that match the paths of other programs' files. */
const programs: readonly (readonly [directory: string, pattern: RegExp])[] = [
  [".opencode", /\/(?:\.opencode|opencode)\/|\/opencode\.jsonc?$/],
  [".claude", /\/\.claude\/|\/CLAUDE\.md$|\/\.mcp\.json$/],
  [".codex", /\/\.codex\//],
  [".agents", /\/\.agents\//],
]

/**
 * Returns the paths of other programs' files from which Tackle uses permissions, settings, agents, commands, skills and
 * instructions. The paths are formatted for display.
 */
export function foreignConfig(workspace: Workspace): ForeignConfig {
  const { config, worktree, home } = workspace
  const settings = config.permission.foreign.flatMap(({ source }) => source?.file ?? [])
  const found: (readonly [what: string, path: string])[] = [
    ...[...new Set(settings)].map((path) => ["permissions", path] as const),
    ...config.files.map(({ path }) => [`${trustKind(path)}s`, path] as const),
    ...trustedSkillFiles(workspace).map(({ path }) => ["skills", path] as const),
    ...instructionFiles(workspace).map((path) => ["instructions", path] as const),
  ]
  const taken: Record<string, Record<string, string[]>> = {}
  for (const [what, path] of found) {
    const shown = isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
    // Matches the path relative to the project or home directory, because a parent directory does not identify the
    // program.
    const program = programs.find(([, pattern]) => pattern.test(`/${shown}`))?.[0]
    if (program === undefined) continue
    taken[program] ??= {}
    taken[program][what] = [...(taken[program][what] ?? []), shown]
  }
  return taken
}

/** Formats the paths on one line. */
export function describeForeignConfig(taken: ForeignConfig): string {
  const parts = Object.entries(taken).map(
    ([program, kinds]) =>
      `${program}: ${Object.entries(kinds)
        .map(([what, paths]) => `${what} ${paths.join(", ")}`)
        .join("; ")}`,
  )
  return parts.length === 0 ? "nothing in .opencode, .claude, .codex or .agents" : parts.join(". ")
}
