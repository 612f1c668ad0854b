import { basename, extname } from "node:path"
import type { Command } from "commander"
import { type EnabledSetting, enabledSettings } from "../../config/enabled-settings.ts"
import { ConfigError } from "../../config/errors.ts"
import { readTrustContent } from "../../config/project-trust-items.ts"
import { readSmallFile } from "../../config/read.ts"
import { shownName, wholeName } from "../../config/shown-name.ts"
import { type FoundItem, trustPath } from "../../permission/trust-items.ts"
import { isToolFile } from "../../registry/files.ts"
import { UsageError } from "../../util/errors.ts"
import { atTerminal, type Clack, question } from "../process/question.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { describeItem, type ShownItem } from "../view/trust-item.ts"
import { folded } from "../view/visible.ts"
import { tellMistakes } from "../workspace/engine.ts"
import { type FormatFlags, openPlace, openPlaceAnyhow, type Place } from "../workspace/workspace.ts"
import { formatFlag, locationFlags } from "./flags.ts"

/** Defines `tackle trust`. */
export function defineTrust(trust: Command): void {
  locationFlags(trust)
    .argument("[item...]", "only these items, as named by --list")
    .option("--yes", "do not ask")
    .option("--list", "show the items, what they enable and what is trusted")
    .option("--revoke", "remove the trust")
    .addOption(formatFlag())
    .option("--json", "same as --format json")
    .action(trustProject)
}

/** `yes`: nothing is asked. `list` changes nothing. */
export interface TrustFlags extends FormatFlags {
  yes?: boolean
  list?: boolean
  revoke?: boolean
  /** The older name of `--format json`. */
  json?: boolean
}

/**
 * `tackle trust [item...]`: shows what each item would enable, asks, and pins those that the person wants by their
 * hash. With names only these; `--list` and JSON without `--yes` change nothing.
 */
export async function trustProject(names: readonly string[], flags: TrustFlags): Promise<void> {
  // What is taken back, or only looked at, is not held up by a mistake in what it says.
  const place = await (flags.revoke || flags.list ? openPlaceAnyhow : openPlace)(flags)
  tellMistakes(place.mistakes)
  const json = flags.json || flags.format === "json"
  const known = chosen(await shownItems(place), names)
  if (flags.revoke) return revoke(place, names, { known, json })
  const open = known.filter(({ state }) => state === "new" || state === "changed")
  if (flags.list || (json && !flags.yes)) return list(place, known, json)
  if (known.length === 0 || open.length === 0) {
    if (json) return list(place, known, json)
    return printLine(
      known.length === 0
        ? `${nothing(place)}: there is nothing to trust.`
        : `${root(place)} is trusted as it is.`,
    )
  }

  if (!json) {
    printLine(`In ${root(place)} this would count from now on, until it changes:`)
    for (const item of known) printLine(`\n${shown(item)}`)
    printLine("")
  }
  const wanted = flags.yes ? open : await choose(open)
  if (wanted.length === 0) throw new UsageError("Nothing was changed.")
  place.trust.trust(place.worktree, wanted)
  if (json) return list(place, chosen(await shownItems(place), names), json)
  for (const { path, hash } of wanted)
    printLine(hash === "" ? `Not trusted: ${wholeName(path)} cannot be read.` : `Trusted ${wholeName(path)}.`)
}

function list(place: Place, items: readonly ShownItem[], json: boolean): void {
  const { worktree } = place
  const trusted = items.every(({ state }) => state === "trusted" || state === "gone")
  if (json) printJson({ worktree, trusted, items })
  else if (items.length === 0) printLine(`${nothing(place)}.`)
  else printLine(items.map(shown).join("\n\n"))
}

/** Broken between words for a terminal, with what follows further in than anything that is a line of its own. */
function shown(item: ShownItem): string {
  const text = describeItem(item)
  return process.stdout.isTTY ? folded(text, process.stdout.columns) : text
}

function revoke(
  place: Place,
  names: readonly string[],
  { known, json }: { known: readonly ShownItem[]; json: boolean },
): void {
  const { trust, worktree } = place
  const had = known.filter(({ state }) => state !== "new")
  if (names.length === 0) trust.revoke(worktree)
  else trust.revoke(worktree, had)
  const lines =
    names.length === 0
      ? [`${root(place)} is not trusted any more.`]
      : known.map(
          ({ path, state }) =>
            `${wholeName(path)} ${state === "new" ? "was not trusted" : "is not trusted any more"}.`,
        )
  if (json) printJson({ worktree, revoked: had.map(({ kind, path }) => ({ kind, path })) })
  else for (const line of lines) printLine(line)
}

/** What is there, and what was trusted and is gone. */
async function shownItems(place: Place): Promise<ShownItem[]> {
  const { trust, worktree, items } = place
  const found: ShownItem[] = []
  for (const item of items)
    found.push({ ...(await describe(item, place)), state: trust.state(worktree, item) })
  const there = new Set(items.map(({ kind, path }) => `${kind}:${path}`))
  const gone = trust.known(worktree).filter(({ kind, path }) => !there.has(`${kind}:${path}`))
  return [...found, ...gone.map((item) => ({ ...item, hash: "", state: "gone" as const }))]
}

async function describe(
  { kind, path, hash, file, contents, dependencies }: FoundItem,
  place: Place,
): Promise<Omit<ShownItem, "state">> {
  if (hash === "") return { kind, path, hash }
  if (kind === "config" || kind === "agent" || kind === "command") {
    const read = readSmallFile(file)
    // What is shown has to be what is pinned.
    if (read === undefined || (await readTrustContent({ path: file, ...read }, place)).hash !== hash)
      throw new UsageError(`${wholeName(path)} changed just now. Run \`tackle trust\` again.`)
    return { kind, path, hash, settings: await settingsOf(file, read.text, kind) }
  }
  const files = Object.fromEntries(
    [...contents].map(([real, each]) => [trustPath(place.worktree, real), each]),
  )
  const id = kind === "tool" && isToolFile(file) ? { tool: basename(path, extname(path)) } : {}
  return {
    ...{ kind, path, hash, ...id, files },
    ...(dependencies
      ? { dependencies: { covered: dependencies.roots.length, beyond: dependencies.beyond } }
      : {}),
  }
}

/** Empty for another program's agent or command that cannot be read: it is left out. */
async function settingsOf(file: string, text: string, kind: FoundItem["kind"]): Promise<EnabledSetting[]> {
  try {
    return await enabledSettings(file, text)
  } catch (error) {
    if (kind !== "config" && error instanceof ConfigError) return []
    throw error
  }
}

/** Those that are named, or all. Throws `UsageError` for a name that none of them has. */
function chosen(items: readonly ShownItem[], names: readonly string[]): ShownItem[] {
  const unknown = names.find((name) => !items.some(({ path }) => path === name))
  if (unknown !== undefined) {
    throw new UsageError(
      `This project brings no ${wholeName(unknown)}. \`tackle trust --list\` shows what it brings.`,
    )
  }
  return items.filter(({ path }) => names.length === 0 || names.includes(path))
}

async function choose(items: readonly ShownItem[]): Promise<readonly ShownItem[]> {
  if (!atTerminal()) {
    throw new UsageError("There is no terminal to ask at. `tackle trust --yes` trusts without asking.")
  }
  const { chooseItems } = await import("./trust.ts")
  return chooseItems(items)
}

function nothing(place: Place): string {
  return `${root(place)} has no config, tools, plugins, skills, agents or commands of its own`
}

function root({ worktree }: Place): string {
  return wholeName(worktree)
}

/** Asks which of the items the person trusts: all, one after the other, or none. Escape is none. */
export async function chooseItems(items: readonly ShownItem[]): Promise<readonly ShownItem[]> {
  const [only] = items
  if (items.length === 1 && only) return (await wants(only)) ? items : []
  const answer = await question(({ select }, signal) =>
    select({
      message: "Trust these?",
      output: process.stderr,
      signal,
      initialValue: "none",
      options: [
        { value: "none", label: "no" },
        { value: "each", label: "one after the other" },
        { value: "all", label: `all ${items.length}` },
      ],
    }),
  )
  if (answer === "all") return items
  if (answer !== "each") return []
  const wanted: ShownItem[] = []
  for (const item of items) if (await wants(item)) wanted.push(item)
  return wanted
}

async function wants({ path }: ShownItem): Promise<boolean> {
  const ask = ({ confirm }: Clack, signal: AbortSignal) =>
    confirm({ message: `Trust ${shownName(path)}?`, initialValue: false, output: process.stderr, signal })
  return (await question(ask)) === true
}
