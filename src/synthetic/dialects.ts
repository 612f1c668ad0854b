import type { Dialect, DialectName, Opening, SyntheticTool } from "./dialect.ts"
import { hermes } from "./dialects/hermes.ts"
import { jsonFence } from "./dialects/json-fence.ts"
import { llama } from "./dialects/llama.ts"
import { gemmaOpenings, leftovers, markOpenings } from "./dialects/marks.ts"
import { mistral } from "./dialects/mistral.ts"
import { pythonic } from "./dialects/pythonic.ts"
import { xml } from "./dialects/xml.ts"

const dialects: Readonly<Record<DialectName, Dialect>> = {
  hermes,
  "json-fence": jsonFence,
  llama,
  mistral,
  pythonic,
  xml,
}

/** The dialect of that name. */
export function dialectNamed(name: DialectName): Dialect {
  return dialects[name]
}

/** What models were trained to write, by a word of their id. The first that fits counts. */
const habits: readonly [RegExp, DialectName][] = [
  [/qwen-?3(\.\d)?-?coder|minimax|seed-oss/i, "xml"],
  [/qwen-?2\.5-?coder/i, "json-fence"],
  [/hermes|qwen|qwq|glm/i, "hermes"],
  [/llama-?4|gemma|functiongemma/i, "pythonic"],
  [/mistral|mixtral|ministral|devstral|codestral/i, "mistral"],
  [/llama/i, "llama"],
]

/** The dialect that a model of this id most likely writes well; Hermes' where nothing is known. */
export function dialectFor(modelID: string): DialectName {
  return habits.find(([pattern]) => pattern.test(modelID))?.[1] ?? "hermes"
}

/** What nobody writes who means no call, of all dialects and beside them. */
const explicitOpenings: readonly Opening[] = [
  ...Object.values(dialects).flatMap(({ openings }) => openings.filter(({ explicit }) => explicit)),
  ...markOpenings,
  ...gemmaOpenings,
  ...leftovers,
]

/** By dialect, without those that are names of tools. Put in order once: it takes longer than to read a short answer. */
const fixedOpenings = new Map(
  Object.values(dialects).map(({ name, openings }) => [
    name,
    longestFirst([...new Set([...openings, ...explicitOpenings])]),
  ]),
)

/**
 * What a parser listens for: everything of the dialect, and of all others what nobody writes who means no call. The
 * longest openings come first, so that none hides behind a shorter one.
 */
export function openingsFor(name: DialectName, tools: readonly SyntheticTool[]): readonly Opening[] {
  const fixed = fixedOpenings.get(name) ?? []
  const { toolOpenings } = dialects[name]
  return toolOpenings === undefined ? fixed : longestFirst([...tools.map(toolOpenings), ...fixed])
}

function longestFirst(openings: readonly Opening[]): Opening[] {
  return openings.toSorted((a, b) => b.literal.length - a.literal.length)
}
