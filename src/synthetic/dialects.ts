import type { Dialect, DialectName, Opening, SyntheticTool } from "./dialect.ts"
import { hermes } from "./dialects/hermes.ts"
import { jsonFence, llama, mistral } from "./dialects/json.ts"
import { gemmaOpenings, markOpenings, surroundingMarks } from "./dialects/marks.ts"
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

/** Returns the dialect with this name. */
export function dialectNamed(name: DialectName): Dialect {
  return dialects[name]
}

/** Dialects that models were trained on, by model id. The first matching row applies. */
const dialectsByModel: readonly [RegExp, DialectName][] = [
  [/qwen-?3(\.\d)?-?coder|minimax|seed-oss/i, "xml"],
  [/qwen-?2\.5-?coder/i, "json-fence"],
  [/hermes|qwen|qwq|glm/i, "hermes"],
  [/llama-?4|gemma|functiongemma/i, "pythonic"],
  [/mistral|mixtral|ministral|devstral|codestral/i, "mistral"],
  [/llama/i, "llama"],
]

/** Returns the dialect that a model with this id is most likely to write well, or `hermes` if no row matches. */
export function dialectFor(modelID: string): DialectName {
  return dialectsByModel.find(([pattern]) => pattern.test(modelID))?.[1] ?? "hermes"
}

/** Openings that are recognized in every dialect. */
const explicitOpenings: readonly Opening[] = [
  ...Object.values(dialects).flatMap(({ openings }) => openings.filter(({ explicit }) => explicit)),
  ...markOpenings,
  ...gemmaOpenings,
  ...surroundingMarks,
]

/**
 * Openings by dialect, except openings that contain tool names. They are sorted once, because sorting takes longer than
 * reading a short answer.
 */
const fixedOpenings = new Map(
  Object.values(dialects).map(({ name, openings }) => [
    name,
    longestFirst([...new Set([...openings, ...explicitOpenings])]),
  ]),
)

/**
 * Returns the openings that a parser looks for: all openings of the dialect and the openings that are recognized in
 * every dialect. The longest come first, so that a shorter opening does not hide a longer one.
 */
export function openingsFor(name: DialectName, tools: readonly SyntheticTool[]): readonly Opening[] {
  const fixed = fixedOpenings.get(name) ?? []
  const { toolOpenings } = dialects[name]
  return toolOpenings === undefined ? fixed : longestFirst([...tools.map(toolOpenings), ...fixed])
}

function longestFirst(openings: readonly Opening[]): Opening[] {
  return openings.toSorted((a, b) => b.literal.length - a.literal.length)
}
