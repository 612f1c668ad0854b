import type { Rule } from "../schema/permission.ts"
import { TackleError } from "../util/errors.ts"

/** What a refusal is about. `feedback` is what the person wrote with it. */
export interface Denial {
  /** `denied` by a rule, `rejected` by a person, `unanswered` where nobody could be asked. */
  kind: "denied" | "rejected" | "unanswered"
  permission: string
  patterns: readonly string[]
  by: "rule" | "person" | "plugin" | "no-terminal" | "auto"
  rule?: Rule
  feedback?: string
}

/** A call was not allowed. The message is for the model: what was refused, and what it may do instead. */
export class PermissionError extends TackleError {
  readonly kind: Denial["kind"]
  readonly permission: string
  readonly patterns: readonly string[]
  readonly by: Denial["by"]
  readonly rule: Rule | undefined
  readonly feedback: string | undefined

  constructor(denial: Denial) {
    super(describe(denial), { code: `permission.${denial.kind}`, recoverable: true })
    this.kind = denial.kind
    this.permission = denial.permission
    this.patterns = denial.patterns
    this.by = denial.by
    this.rule = denial.rule
    this.feedback = denial.feedback
  }
}

/** Longest part of a pattern that a message repeats, and how many patterns it names. */
const maxShownLength = 200
const maxShownPatterns = 3

function describe(denial: Denial): string {
  const what = `${denial.permission} ${list(denial.patterns)}`
  if (denial.by === "rule") {
    const rule = denial.rule ? ` (${denial.rule.permission}: ${shorten(denial.rule.pattern)})` : ""
    return `Not allowed: ${what} is denied by a rule${rule}. Do not try it in another form. Find a way that does not need it, or say what is missing.`
  }
  if (denial.by === "person") {
    if (denial.feedback) return `The person refused ${what} and said: ${denial.feedback}`
    return `The person refused ${what}. Do not try it again in another form. Go another way, or ask what they want.`
  }
  if (denial.by === "plugin")
    return `Not allowed: a plugin refused ${what}. Do not try it again in another form. Go another way, or say what is missing.`
  if (denial.by === "auto") {
    return `Refused: ${what} needs a person's answer and none is at hand; it is not given automatically. Go on without it, or say that it is needed.`
  }
  return `Refused: ${what} needs a person's answer and nobody can be asked here. Go on without it, or say which rule would have to allow it.`
}

function list(patterns: readonly string[]): string {
  const shown = patterns.slice(0, maxShownPatterns).map((pattern) => JSON.stringify(shorten(pattern)))
  const more = patterns.length - shown.length
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "")
}

function shorten(text: string): string {
  return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}…` : text
}
