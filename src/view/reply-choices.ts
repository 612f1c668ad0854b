import type { Choice } from "./decision.ts"

/** An answer to a permission request. All clients offer the same answers. */
export type ReplyChoice = "once" | "session" | "project" | "reject" | "feedback"

/**
 * Returns the answers to a permission request in display order. Omits the answers for the session and the project if
 * `always` is false.
 */
export function replyChoices({
  always,
  worktree,
}: {
  always: boolean
  worktree: string
}): Choice<ReplyChoice>[] {
  const all: Choice<ReplyChoice>[] = [
    { value: "once", key: "y", digit: 1, words: ["yes", "once"], label: "yes, once" },
    { value: "session", key: "s", digit: 2, words: ["session"], label: "always, in this session" },
    {
      ...{ value: "project", key: "p", digit: 3, words: ["project"] },
      ...{ label: "always, in this project", hint: worktree },
    },
    { value: "reject", key: "n", digit: 4, words: ["no"], label: "no" },
    { value: "feedback", key: "e", digit: 5, words: [], label: "no, and give a reason" },
  ]
  return all.filter(({ value }) => always || (value !== "session" && value !== "project"))
}
