import { shownName } from "../config/shown-name.ts"
import { type Clack, question } from "./question.ts"
import type { ShownItem } from "./view/trust-item.ts"

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
