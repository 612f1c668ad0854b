import type { PermissionRequest } from "../schema/permission.ts"
import { newId } from "../util/id.ts"
import type { DetailedVerdict } from "./check.ts"
import { invisibleCharacters } from "./invisible.ts"
import type { Check, SessionAsk } from "./request.ts"

/** What still has to be asked: places outside first, since they say most about what the rest means. */
export function openChecks(
  { details }: DetailedVerdict,
  allowed: ReadonlySet<string>,
  tightened = false,
): Check[] {
  const asked = details.filter(({ judgement }) => tightened || judgement.action === "ask")
  const open = asked.map(({ check }) => check)
  const isExternal = (check: Check) => (check.permission === "external_directory" ? 0 : 1)
  return open.filter((check) => !allowed.has(keyOf(check))).sort((a, b) => isExternal(a) - isExternal(b))
}

/** One thing that is asked, whoever asks: so that an answer holds for it when the rules are read again. */
export function keyOf(check: Check): string {
  return JSON.stringify([check.permission, check.forms, check.resolved])
}

/** What a person is asked about checks of one permission, with what may be remembered of the answer. */
export function questionOf(request: SessionAsk, group: readonly Check[]): PermissionRequest {
  const patterns = [...new Set(group.map((check) => check.pattern))]
  const metadata: Record<string, unknown> = { ...request.metadata }
  const note = (name: string, values: readonly (string | undefined)[]) => {
    const found = [...new Set(values.filter((value) => value !== undefined))]
    if (found.length > 0) metadata[name] = found
  }
  note(
    "resolved",
    group.map((check) => check.resolved),
  )
  note(
    "reasons",
    group.map((check) => check.reason),
  )
  note(
    "protected",
    group.map((check) => check.protection),
  )
  const hidden = [...patterns, ...request.patterns].some(invisibleCharacters)
  if (hidden) metadata.invisibleCharacters = true

  // Remembering a part of what is asked would not spare the next question, so it is all or nothing.
  const remembered = group.every((check) => check.remember !== undefined) && !hidden
  const always = remembered ? [...new Set(group.flatMap((check) => check.remember ?? []))] : []
  const permission = group[0]?.permission ?? request.permission
  const question: PermissionRequest = {
    id: newId("per"),
    sessionID: request.sessionID,
    permission,
    patterns,
    always,
    metadata,
  }
  if (request.tool) question.tool = request.tool
  return question
}
