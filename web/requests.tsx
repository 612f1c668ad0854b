import type { SessionState } from "../src/view/session-state.ts"
import { PermissionCard } from "./permission-card.tsx"
import { QuestionCard } from "./question-card.tsx"

/** The requests that wait for the user. Only the first card takes the focus. */
export function RequestCards({ state: { requests, questions, session } }: { state: SessionState }) {
  return (
    <>
      {requests.map((request, index) => (
        <PermissionCard
          key={request.id}
          request={request}
          worktree={session.worktree}
          isFirst={index === 0}
        />
      ))}
      {questions.map((request, index) => (
        <QuestionCard key={request.id} request={request} isFirst={index === 0 && requests.length === 0} />
      ))}
    </>
  )
}
