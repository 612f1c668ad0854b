import type { PermissionRequest } from "../schema/permission.ts"
import type { DetailedVerdict } from "./check.ts"
import { PermissionError } from "./errors.ts"
import type { Answer } from "./pending.ts"

/** Throws `PermissionError` where a rule denies something of the request. */
export function refuseDenied({ details }: DetailedVerdict): void {
  const denied = details.filter(({ judgement }) => judgement.action === "deny")
  const [first] = denied
  if (!first) return
  const { permission } = first.check
  const patterns = denied
    .filter(({ check }) => check.permission === permission)
    .map(({ check }) => check.pattern)
  const { rule } = first.judgement
  throw new PermissionError({ kind: "denied", permission, patterns, by: "rule", ...(rule ? { rule } : {}) })
}

/** What an answer that is no yes means for the call. */
export function refusal(
  { permission, patterns }: PermissionRequest,
  { reply, source }: Answer,
): PermissionError {
  const about = { permission, patterns }
  if (source === "no-terminal")
    return new PermissionError({ ...about, kind: "unanswered", by: "no-terminal" })
  if (source === "auto") return new PermissionError({ ...about, kind: "unanswered", by: "auto" })
  const feedback = reply.reply === "reject" && reply.message !== undefined ? { feedback: reply.message } : {}
  return new PermissionError({ ...about, kind: "rejected", by: "person", ...feedback })
}
