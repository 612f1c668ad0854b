import { globSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import type { DialectName, SyntheticTool } from "../../../src/model/synthetic/dialect.ts"
import { createCallParser, type ParserEvent } from "../../../src/model/synthetic/parser.ts"

/** What a model wrote, and what is to be read in it. */
export interface CorpusCase {
  /** Its file without the ending: the shape that it is about. */
  group: string
  about: string
  /** The dialect that the model was told. */
  dialect: DialectName
  text: string
  /** The text that stays, in one. */
  says: string
  calls: { tool: string; input: unknown }[]
  /** How many texts are taken for calls that went wrong. */
  malformed?: number
  /** The answer reached its limit. */
  cut?: boolean
}

/** What was read. */
export type Found = Pick<CorpusCase, "says" | "calls"> & { malformed: number }

const directory = resolve(import.meta.dirname, "../../corpus/synthetic")

/** The tools that were offered with every text of the corpus. */
export const corpusTools: SyntheticTool[] = JSON.parse(readFileSync(join(directory, "tools.json"), "utf8"))

/** All cases, in the order of their files. */
export const corpus: CorpusCase[] = globSync(join(directory, "*.jsonl"))
  .sort()
  .flatMap((file) =>
    readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => ({ group: basename(file, ".jsonl"), ...JSON.parse(line) })),
  )

/** What the case expects. */
export function expected({ says, calls, malformed = 0 }: CorpusCase): Found {
  return { says, calls, malformed }
}

/** Everything that a parser says of the pieces. */
export function readPieces({ dialect, cut = false }: CorpusCase, pieces: readonly string[]): ParserEvent[] {
  const parser = createCallParser({ tools: corpusTools, dialect })
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
  }
}
