import { globSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import type { DialectName, SyntheticTool } from "../../src/synthetic/dialect.ts"
import { dialectFor } from "../../src/synthetic/dialects.ts"
import { createCallParser, type ParserEvent } from "../../src/synthetic/parser.ts"

/** A text that a model wrote, and the expected result. */
export interface CorpusCase {
  /** The file name without extension. */
  group: string
  about: string
  /** The dialect that the model was asked to use. */
  dialect: DialectName
  /** The offered tools. */
  tools: readonly SyntheticTool[]
  text: string
  /** The remaining text. */
  says: string
  calls: { tool: string; input: unknown }[]
  /** Number of malformed calls. */
  malformed?: number
  /** Malformed calls whose only problem is a tool that is not offered. */
  unknown?: { tool: string; input: unknown }[]
  /** True if the answer reached its token limit. */
  cut?: boolean
}

/** A case as stored in its file. A model instead of a dialect selects the dialect of that model. */
type WrittenCase = Omit<CorpusCase, "group" | "tools" | "dialect"> &
  ({ dialect: DialectName } | { model: string })

/** The result of the parser. */
export type Found = Required<Pick<CorpusCase, "says" | "calls" | "malformed" | "unknown">>

/**
 * The sets of cases. `synthetic` was written together with the parser. `model-texts` was written without it, after
 * tests, documentation and bug reports of servers; the expected results were fixed before the first run of the parser.
 * `mentions` holds texts with a call that is meant or only mentioned.
 */
export const corpora: Readonly<Record<"synthetic" | "model-texts" | "mentions", readonly CorpusCase[]>> = {
  mentions: readCorpus("mentions"),
  synthetic: readCorpus("synthetic"),
  "model-texts": readCorpus("model-texts"),
}

/** Reads all cases of a set in the order of their files. */
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

/** Returns the expected result. */
export function expected({ says, calls, malformed = 0, unknown = [] }: CorpusCase): Found {
  return { says, calls, malformed, unknown }
}

/** Returns all events for the pieces. */
export function readPieces(
  { dialect, tools, cut = false }: Pick<CorpusCase, "dialect" | "tools" | "cut">,
  pieces: readonly string[],
): ParserEvent[] {
  const parser = createCallParser({ tools, dialect })
  return [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end({ cut })]
}

/** Summarizes events independently of how text and input were split. */
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
