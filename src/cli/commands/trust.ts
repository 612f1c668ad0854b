import { projectTrustItems } from "../../config/locate.ts"
import type { TrustItem } from "../../permission/trust-items.ts"
import { UsageError } from "../../util/errors.ts"
import { printLine } from "../print.ts"
import { openPlace, type PlaceFlags } from "../setup.ts"

export interface TrustFlags extends PlaceFlags {
  yes?: boolean
  revoke?: boolean
}

/** `tackle trust`: shows what it would enable, asks, and pins each item by its hash. */
export async function trustProject(flags: TrustFlags): Promise<void> {
  const place = await openPlace({ ...flags, trust: false })
  const { trust, worktree, untrusted } = place
  if (flags.revoke) {
    trust.trust(worktree, [])
    return printLine(`${worktree} is not trusted any more.`)
  }
  const items = projectTrustItems(place)
  if (items.length === 0)
    return printLine(`${worktree} has no config, tools or skills of its own: there is nothing to trust.`)
  if (untrusted.length === 0) return printLine(`${worktree} is trusted as it is.`)

  printLine(`In ${worktree} this would count from now on, until it changes:`)
  for (const item of items) printLine(`  ${describe(item, untrusted)}`)
  if (!flags.yes && !(await confirmed())) throw new UsageError("Nothing was changed.")
  trust.trust(worktree, items)
  printLine("Trusted.")
}

function describe(item: TrustItem, untrusted: readonly TrustItem[]): string {
  const what = {
    config: "settings, rules, providers",
    tool: "code that runs as a tool",
    skill: "instructions for the model",
  }[item.kind]
  const isNew = untrusted.some(({ kind, path }) => kind === item.kind && path === item.path)
  return `${item.path}  (${what}${isNew ? "" : ", trusted already"})`
}

async function confirmed(): Promise<boolean> {
  if (process.stdin.isTTY !== true) {
    throw new UsageError("There is no terminal to ask at. `tackle trust --yes` trusts without asking.")
  }
  const { confirm } = await import("@clack/prompts")
  const { question } = await import("../question.ts")
  const ask = (signal: AbortSignal) =>
    confirm({ message: "Trust these files?", initialValue: false, output: process.stderr, signal })
  return (await question(ask)) === true
}
