import { basename, extname } from "node:path"
import { type Command, Option } from "commander"
import { type EnabledSetting, enabledSettings } from "../../config/enabled-settings.ts"
import { ConfigError } from "../../config/errors.ts"
import { readTrustContent } from "../../config/project-trust-items.ts"
import { shownName, wholeName } from "../../config/shown-name.ts"
import { readSmallFile } from "../../config/small-file.ts"
import { type FoundItem, trustPath } from "../../permission/trust.ts"
import { isToolFile } from "../../registry/files.ts"
import { UsageError } from "../../util/errors.ts"
import type { Choice } from "../../view/decision.ts"
import { folded } from "../../view/visible.ts"
import { decide } from "../process/choice.ts"
import { atTerminal } from "../process/question.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { describeItem, type ShownItem } from "../view/trust-item.ts"
import { reportProblems } from "../workspace/engine.ts"
import {
  type FormatFlags,
  openWorkspace,
  openWorkspaceWithProblems,
  type Workspace,
} from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, locationFlags } from "./flags.ts"

/** Defines `tackle trust`. */
export function defineTrust(trust: Command): void {
  locationFlags(trust)
    .argument("[item...]", "items to trust or revoke, as shown by --list (default: all items)")
    .option("--yes", "trust the items without asking")
    .addOption(
      new Option("--list", "show the items, what each enables, and whether it is trusted").conflicts(
        "revoke",
      ),
    )
    .option("--revoke", "stop trusting the items")
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(trustProject)
}

/** Flags for `tackle trust`. `yes` skips the question. `list` changes nothing. */
export interface TrustFlags extends FormatFlags {
  yes?: boolean
  list?: boolean
  revoke?: boolean
}

/**
 * Runs `tackle trust [item...]`: shows what each item enables, asks the user, and pins the chosen items by hash. If
 * names are given, the command applies only to the items with these names. With `--list`, or with JSON output but
 * neither `--yes` nor `--revoke`, changes nothing.
 */
export async function trustProject(names: readonly string[], flags: TrustFlags): Promise<void> {
  // Problems in the config do not prevent revoking and listing.
  const workspace = await (flags.revoke || flags.list ? openWorkspaceWithProblems : openWorkspace)(flags)
  reportProblems(workspace.problems)
  const json = flags.format === "json"
  const known = chosen(await shownItems(workspace), names)
  if (flags.revoke) return revoke(workspace, names, { known, json })
  const open = known.filter(({ state }) => state === "new" || state === "changed")
  if (flags.list || (json && !flags.yes)) return list(workspace, known, json)
  if (open.length === 0) {
    if (json) return list(workspace, known, json)
    return printLine(
      names.length > 0
        ? "Nothing to trust, because none of the named items is new or changed."
        : known.every(({ state }) => state === "gone")
          ? `Nothing to trust, because ${nothing(workspace)}.`
          : `${root(workspace)} is already trusted.`,
    )
  }

  if (!json) {
    printLine(
      `Trusting ${root(workspace)} enables these items. If an item changes later, you must trust it again.`,
    )
    for (const item of known) if (item.state !== "gone") printLine(`\n${shown(item)}`)
    printLine("")
  }
  const wanted = flags.yes ? open : await choose(open)
  if (wanted.length === 0) throw new UsageError("Nothing was changed.")
  workspace.trust.trust(workspace.worktree, wanted)
  if (json) return list(workspace, chosen(await shownItems(workspace), names), json)
  for (const { path, hash } of wanted)
    printLine(
      hash === ""
        ? `${wholeName(path)} was not trusted, because it cannot be read or parsed completely.`
        : `Trusted ${wholeName(path)}.`,
    )
}

function list(workspace: Workspace, items: readonly ShownItem[], json: boolean): void {
  const { worktree } = workspace
  const trusted = items.every(({ state }) => state === "trusted" || state === "gone")
  if (json) printJson({ worktree, trusted, items })
  else if (items.length === 0) printLine(`${nothing(workspace)}.`)
  else printLine(items.map(shown).join("\n\n"))
}

/** Formats the item, and wraps the text in a terminal. */
function shown(item: ShownItem): string {
  const text = describeItem(item)
  return process.stdout.isTTY ? folded(text, process.stdout.columns) : text
}

function revoke(
  workspace: Workspace,
  names: readonly string[],
  { known, json }: { known: readonly ShownItem[]; json: boolean },
): void {
  const { trust, worktree } = workspace
  const had = known.filter(({ state }) => state !== "new")
  if (names.length === 0) trust.revoke(worktree)
  else trust.revoke(worktree, had)
  const lines =
    names.length === 0
      ? [`${root(workspace)} is no longer trusted.`]
      : known.map(
          ({ path, state }) =>
            `${wholeName(path)} ${state === "new" ? "was not trusted" : "is no longer trusted"}.`,
        )
  if (json) printJson({ worktree, revoked: had.map(({ kind, path }) => ({ kind, path })) })
  else for (const line of lines) printLine(line)
}

/** Returns the current items and the formerly trusted items that no longer exist. */
async function shownItems(workspace: Workspace): Promise<ShownItem[]> {
  const { trust, worktree, items } = workspace
  const found: ShownItem[] = []
  for (const item of items)
    found.push({ ...(await describe(item, workspace)), state: trust.state(worktree, item) })
  const there = new Set(items.map(({ kind, path }) => `${kind}:${path}`))
  const gone = trust.known(worktree).filter(({ kind, path }) => !there.has(`${kind}:${path}`))
  return [...found, ...gone.map((item) => ({ ...item, hash: "", state: "gone" as const }))]
}

async function describe(
  { kind, path, hash, file, contents, dependencies }: FoundItem,
  workspace: Workspace,
): Promise<Omit<ShownItem, "state">> {
  if (hash === "") return { kind, path, hash }
  if (kind === "config" || kind === "agent" || kind === "command") {
    const read = readSmallFile(file)
    // Only the content that the user saw may be pinned.
    if (read === undefined || (await readTrustContent({ path: file, ...read }, workspace)).hash !== hash)
      throw new UsageError(`${wholeName(path)} changed while Tackle was reading it. Run the command again.`)
    return { kind, path, hash, settings: await settingsOf(file, read.text, kind) }
  }
  const files = Object.fromEntries(
    [...contents].map(([real, each]) => [trustPath(workspace.worktree, real), each]),
  )
  const id = kind === "tool" && isToolFile(file) ? { tool: basename(path, extname(path)) } : {}
  return {
    ...{ kind, path, hash, ...id, files },
    ...(dependencies
      ? { dependencies: { covered: dependencies.roots.length, beyond: dependencies.beyond } }
      : {}),
  }
}

/**
 * Returns the settings in a file. Returns an empty list for an invalid agent or command, because its problem is
 * reported when the config is loaded.
 */
async function settingsOf(file: string, text: string, kind: FoundItem["kind"]): Promise<EnabledSetting[]> {
  try {
    return await enabledSettings(file, text)
  } catch (error) {
    if (kind !== "config" && error instanceof ConfigError) return []
    throw error
  }
}

/** Returns the named items, or all items if no name is given. Throws `UsageError` for an unknown name. */
function chosen(items: readonly ShownItem[], names: readonly string[]): ShownItem[] {
  const unknown = names.find((name) => !items.some(({ path }) => path === name))
  if (unknown !== undefined) {
    throw new UsageError(
      `This project has no item ${wholeName(unknown)}. Run \`tackle trust --list\` to list its items.`,
    )
  }
  return items.filter(({ path }) => names.length === 0 || names.includes(path))
}

async function choose(items: readonly ShownItem[]): Promise<readonly ShownItem[]> {
  if (!atTerminal()) {
    throw new UsageError(
      "Cannot ask without a terminal. Add --yes to the command to trust without being asked.",
    )
  }
  return chooseItems(items)
}

function nothing(workspace: Workspace): string {
  return `${root(workspace)} does not contain config, tools, plugins, skills, agents or commands`
}

function root({ worktree }: Workspace): string {
  return wholeName(worktree)
}

/** Asks which items to trust: all, one by one, or none. Escape selects none. */
export async function chooseItems(items: readonly ShownItem[]): Promise<readonly ShownItem[]> {
  const [only] = items
  if (items.length === 1 && only) return (await wants(only)) ? items : []
  const choices: Choice<"all" | "each" | "none">[] = [
    { value: "all", key: "y", digit: 1, words: ["yes", "all"], label: `yes, all ${items.length}` },
    { value: "each", key: "o", digit: 2, words: ["one"], label: "one by one" },
    { value: "none", key: "n", digit: 3, words: ["no", "none"], label: "no" },
  ]
  const answer = await decide({ message: "Trust these?", choices, safe: "none" })
  if (answer === "all") return items
  if (answer !== "each") return []
  const wanted: ShownItem[] = []
  for (const item of items) if (await wants(item)) wanted.push(item)
  return wanted
}

function wants({ path }: ShownItem): Promise<boolean> {
  const choices: Choice<boolean>[] = [
    { value: true, key: "y", digit: 1, words: ["yes"], label: "yes" },
    { value: false, key: "n", digit: 2, words: ["no"], label: "no" },
  ]
  return decide({ message: `Trust ${shownName(path)}?`, choices, safe: false })
}
