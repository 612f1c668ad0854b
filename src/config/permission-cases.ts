import { isAbsolute } from "node:path"
import { checkRequest } from "../permission/check.ts"
import { type Explanation, explainRequest } from "../permission/explain.ts"
import type { PermissionAsk, Scope } from "../permission/request.ts"
import { defaultRules } from "../permission/rules.ts"
import type { Action, Ruleset } from "../schema/permission.ts"
import { ConfigError, type Problem } from "./errors.ts"
import { loadJsonc } from "./jsonc.ts"
import { entryOf, type ObjectNode, toPlain } from "./node.ts"
import { readRules } from "./rules.ts"

/** A test case with the decision that is expected from the rules. */
export interface PermissionCase {
  /** The line number of the case, starting at 1. */
  line: number
  /**
   * The user's rules, which are applied after the defaults. `effective` stands for the rules that apply in the
   * directory.
   */
  rules: Ruleset | "effective"
  permission: string
  patterns: string[]
  expect: Action | "!allow"
  /** Absolute path of the worktree, which need not exist. */
  cwd?: string
  note?: string
}

/** The result of a case. A failed case includes an explanation. */
export type CaseResult = { passed: true } | { passed: false; explanation: Explanation }

/**
 * Parses one JSON object per line. Skips empty lines and ignores unknown keys. `file` is the name that rules and errors
 * show. If any line is invalid, throws {@link ConfigError} with all problems, sorted by line.
 */
export async function readPermissionCases(text: string, file: string): Promise<PermissionCase[]> {
  const parse = await loadJsonc()
  const problems: Problem[] = []
  const cases: PermissionCase[] = []
  for (const [index, source] of text
    .replace(/^\uFEFF/, "")
    .split("\n")
    .entries()) {
    if (source.trim() === "") continue
    try {
      cases.push(readCase(source, { file, line: index + 1 }, parse))
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(...error.problems)
    }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return cases
}

/** Settings for {@link runPermissionCase}. */
export interface CaseSettings {
  /** The worktree for cases that have no `cwd`. */
  otherwise: string
  home: string
  /** Explains the decision of the rules that apply in the directory. Required for a case with the rules `effective`. */
  effective?(request: { permission: string; patterns: string[] }): Promise<Explanation>
}

/**
 * Evaluates a case in the same way as a call's permission request. Throws `TypeError` if the case uses effective rules
 * and `effective` is undefined.
 */
export async function runPermissionCase(
  { rules, permission, patterns, expect, cwd }: PermissionCase,
  { otherwise, home, effective }: CaseSettings,
): Promise<CaseResult> {
  const meets = (action: Action) => (expect === "!allow" ? action !== "allow" : action === expect)
  if (rules === "effective") {
    if (!effective) throw new TypeError("A case with effective rules requires the rules of a directory.")
    const explanation = await effective({ permission, patterns })
    return meets(explanation.verdict) ? { passed: true } : { passed: false, explanation }
  }
  const directory = cwd ?? otherwise
  const policy = {
    layers: [
      { name: "defaults", rules: defaultRules() },
      { name: "user", rules },
    ] as const,
  }
  const scope: Scope = { directory, worktree: directory, policy: () => policy, own: [] }
  const request: PermissionAsk = { permission, patterns }
  const { action } = await checkRequest(request, scope, home)
  if (meets(action)) return { passed: true }
  return { passed: false, explanation: await explainRequest(request, scope, home) }
}

type ParseLine = (source: string, file: string) => ObjectNode

function readCase(source: string, at: { file: string; line: number }, parse: ParseLine): PermissionCase {
  const problems: Problem[] = []
  const fail = (text: string, column = 1) => problems.push({ position: { ...at, column }, text })
  const tree = readLine(source, at, parse)

  const section = entryOf(tree, "rules")
  const effective = textAt(tree, "rules") === "effective"
  const found = section && !effective ? readRules(section.value, "rules") : { rules: [], problems: [] }
  if (!section)
    fail(
      '"rules" is missing: write rules in the format of `permission` in a config file, {} for no rules, or "effective" for the rules of the directory.',
    )
  for (const problem of found.problems) fail(problem.text, problem.position.column)

  const permission = textAt(tree, "permission")
  if (!permission) fail('"permission" must be a name such as "bash".')
  const patterns = patternsAt(tree)
  if (patterns.length === 0) fail('"pattern" must be a string or a non-empty list of strings.')
  const expect = expectations.find((name) => name === textAt(tree, "expect"))
  if (!expect) fail(`"expect" must be one of ${expectations.join(", ")}.`)
  const cwd = textAt(tree, "cwd")
  if (entryOf(tree, "cwd") && !isAbsolute(cwd ?? "")) fail('"cwd" must be an absolute path.')
  if (effective && cwd !== undefined) fail('"cwd" cannot be combined with effective rules. Use --dir.')
  if (problems.length > 0 || !expect) throw new ConfigError(problems)

  const note = textAt(tree, "note")
  return {
    line: at.line,
    rules: effective ? "effective" : found.rules.map((rule) => ({ ...rule, source: at })),
    permission: permission ?? "",
    patterns,
    expect,
    cwd,
    note,
  }
}

const expectations = ["allow", "ask", "deny", "!allow"] as const

/** Parses one line. Syntax errors contain the line number within the file. */
function readLine(
  source: string,
  { file, line }: { file: string; line: number },
  parse: ParseLine,
): ObjectNode {
  try {
    return parse(source, file)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const problems = error.problems.map(({ position, text }) => ({
      position: { ...position, line },
      text: text
        .replace("a config file must contain an object", "a case must be an object")
        .replace("the end of the file", "the end of the line"),
    }))
    throw new ConfigError(problems, error)
  }
}

function textAt(tree: ObjectNode, key: string): string | undefined {
  const value = entryOf(tree, key)?.value
  return value?.kind === "scalar" && typeof value.value === "string" ? value.value : undefined
}

function patternsAt(tree: ObjectNode): string[] {
  const node = entryOf(tree, "pattern")?.value
  const value = node ? toPlain(node) : undefined
  const values: unknown[] = Array.isArray(value) ? value : [value]
  return values.every((entry): entry is string => typeof entry === "string") ? values : []
}
