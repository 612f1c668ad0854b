import type { Bend, Draft } from "./bend.ts"
import { contentBends } from "./content-bends.ts"
import { refusals } from "./refusals.ts"
import { signBends } from "./sign-bends.ts"
import { spaceBends } from "./space-bends.ts"

const single: Record<string, Bend> = { exact: () => ({}), ...spaceBends, ...signBends, ...contentBends }

/** The ways in which models bend the texts of an edit, alone and two at once, and what must be refused. */
export const bends: Record<string, Bend> = {
  ...single,
  "tabs and typographic": (draft) => chain(draft, "spaces for tabs", "typographic quotes"),
  "CRLF and dedented": (draft) => chain(draft, "dedented", "LF for CRLF"),
  "dedented and blank edges": (draft) => chain(draft, "dedented", "blank edge lines"),
  "fence and too deep": (draft) => chain(draft, "indented too deep", "Markdown fence"),
  "entities and tabs": (draft) => chain(draft, "spaces for tabs", "HTML entities"),
  "numbers and a changed word": (draft) => chain(draft, "a word of a kept line changed", "line numbers"),
  ...refusals,
}

function chain(draft: Draft, first: string, second: string) {
  const one = single[first]?.(draft)
  if (!one || ("expected" in one && one.expected === undefined)) return undefined
  const bent = { ...draft, ...one, expected: one.expected ?? draft.expected }
  const two = single[second]?.(bent)
  return two && { ...bent, ...two }
}
