import type { Rule } from "../schema/permission.ts"
import { TackleError } from "../util/errors.ts"

/** A refused request, with the source of the refusal and its reason. */
export interface Denial {
  /**
   * Why the request was refused: `denied` by a rule, `rejected` by the user or a plugin, or `unanswered` because no
   * user answered it.
   */
  kind: "denied" | "rejected" | "unanswered"
  permission: string
  patterns: readonly string[]
  by: "rule" | "user" | "plugin" | "no-terminal" | "client" | "auto"
  rule?: Rule
  /** Source of a rule that limits the agent, such as `built-in agent plan`. Undefined for other rules. */
  ceiling?: string
  /** Rules that would allow the request, in the format of `--allow`. */
  rules?: readonly string[]
  /** The user's message to the model. */
  feedback?: string
}

/** Thrown when a call is refused. The message tells the model what was refused, why, and what to do next. */
export class PermissionError extends TackleError {
  readonly kind: Denial["kind"]
  readonly permission: string
  readonly patterns: readonly string[]
  readonly by: Denial["by"]
  readonly rule: Rule | undefined
  readonly rules: readonly string[]
  readonly feedback: string | undefined

  constructor(denial: Denial) {
    super(describe(denial), { code: `permission.${denial.kind}`, recoverable: true })
    this.kind = denial.kind
    this.permission = denial.permission
    this.patterns = denial.patterns
    this.by = denial.by
    this.rule = denial.rule
    this.rules = denial.rules ?? []
    this.feedback = denial.feedback
  }
}

/** Maximum number of characters of a pattern that a message shows. */
const maxShownLength = 200
/** Maximum number of patterns that a message shows. */
const maxShownPatterns = 3

function describe({ permission, patterns, by, rule, ceiling, rules = [], feedback }: Denial): string {
  const what = `${permission} ${list(patterns)}`
  const next = "Do not retry it in another form. Choose another approach, or"
  switch (by) {
    case "rule": {
      const source = ceiling === undefined ? "" : `, ${ceiling}`
      const named = rule ? ` (${rule.permission}: ${shorten(rule.pattern)}${source})` : ""
      return `Not allowed: ${what} is denied by a rule${named}. ${next} tell the user what you need.`
    }
    case "user":
      if (feedback) return `The user refused ${what} and said: ${feedback}`
      return `The user refused ${what}. ${next} ask the user what to do.`
    case "plugin":
      return `Not allowed: a plugin refused ${what}. ${next} tell the user what you need.`
    case "auto":
      return `Refused: ${what} needs the user's approval and is not approved automatically. Continue without this action, or tell the user that the approval is needed.`
    case "client":
      return `Refused: ${what} needs the user's approval, but the client did not return the user's answer. Continue without this action, or ${advice(rules)}`
    case "no-terminal":
      return `Refused: ${what} needs the user's approval, but no user is available here. Continue without this action, or ${advice(rules)}`
  }
}

/** Completes a message with what to tell the user. Names only rules that can be shown completely. */
function advice(rules: readonly string[]): string {
  const isShown = rules.length <= maxShownPatterns && rules.every((rule) => rule.length <= maxShownLength)
  if (rules.length === 0 || !isShown) return "tell the user that the approval is needed."
  return `tell the user that ${rules.length === 1 ? "the rule" : "the rules"} ${list(rules)} would allow it.`
}

function list(patterns: readonly string[]): string {
  const shown = patterns.slice(0, maxShownPatterns).map((pattern) => JSON.stringify(shorten(pattern)))
  const more = patterns.length - shown.length
  return shown.join(", ") + (more > 0 ? ` and ${more} more` : "")
}

function shorten(text: string): string {
  return text.length > maxShownLength ? `${text.slice(0, maxShownLength)}…` : text
}
