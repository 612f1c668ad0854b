import { globSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import type { DialectName, SyntheticTool } from "../../src/synthetic/dialect.ts"
import { dialectFor } from "../../src/synthetic/dialects.ts"
import { createCallParser, type ParserEvent } from "../../src/synthetic/parser.ts"

/** What a model wrote, and what is to be read in it. */
export interface CorpusCase {
  /** Its file without the ending: the shape that it is about. */
  group: string
  about: string
  /** The dialect that the model was told. */
  dialect: DialectName
  /** The tools that it was offered. */
  tools: readonly SyntheticTool[]
  text: string
  /** The text that stays, in one. */
  says: string
  calls: { tool: string; input: unknown }[]
  /** How many texts are taken for calls that went wrong. */
  malformed?: number
  /** Those of them that are calls, but of tools that are not offered. */
  unknown?: { tool: string; input: unknown }[]
  /** The answer reached its limit. */
  cut?: boolean
}

/** A case as its file has it: of a model, in place of a dialect, it is told what Tackle tells that model. */
type WrittenCase = Omit<CorpusCase, "group" | "tools" | "dialect"> &
  ({ dialect: DialectName } | { model: string })

/** What was read. */
export type Found = Required<Pick<CorpusCase, "says" | "calls" | "malformed" | "unknown">>

/**
 * The sets of cases. `synthetic` was written along with the parser, `model-texts` without it: after what servers'
 * tests, documentation and reports of faults show of the models' own forms, with what is expected put down before the
 * parser was run.
 */
export const corpora: Readonly<Record<"synthetic" | "model-texts", readonly CorpusCase[]>> = {
  synthetic: readCorpus("synthetic"),
  "model-texts": readCorpus("model-texts"),
}

/** All cases of a set, in the order of their files. */
function readCorpus(name: string): CorpusCase[] {
  const directory = resolve(import.meta.dirname, "../corpus", name)
  const tools: SyntheticTool[] = JSON.parse(readFileSync(join(directory, "tools.json"), "utf8"))
  return globSync(join(directory, "*.jsonl"))
    .sort()
    .flatMap((file) =>
      readFileSync(file, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => {
          const written: WrittenCase = JSON.parse(line)
          const dialect = "dialect" in written ? written.dialect : dialectFor(written.model)
          return { ...written, group: basename(file, ".jsonl"), tools, dialect }
        }),
    )
}

/** What the case expects. */
export function expected({ says, calls, malformed = 0, unknown = [] }: CorpusCase): Found {
  return { says, calls, malformed, unknown }
}

/** Everything that a parser says of the pieces. */
export function readPieces(
  { dialect, tools, cut = false }: Pick<CorpusCase, "dialect" | "tools" | "cut">,
  pieces: readonly string[],
): ParserEvent[] {
  const parser = createCallParser({ tools, dialect })
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end({ cut })]
}

/** The events in a form that does not depend on how text and input were cut. */
export function summary(events: readonly ParserEvent[]): Found {
  return {
    says: events.map((event) => (event.type === "text" ? event.text : "")).join(""),
    calls: events.flatMap((event) =>
      event.type === "call" ? [{ tool: event.tool, input: JSON.parse(event.input) }] : [],
    ),
    malformed: events.filter(({ type }) => type === "malformed").length,
    unknown: events.flatMap((event) =>
      event.type === "malformed" && event.unknown
        ? [{ tool: event.unknown.tool, input: JSON.parse(event.unknown.input) }]
        : [],
    ),
  }
}
