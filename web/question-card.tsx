import { useEffect, useRef, useState } from "preact/hooks"
import type { Question, QuestionRequest } from "../src/schema/question.ts"
import { isWriting, leaveCard } from "./card-focus.ts"
import { api } from "./connection.ts"
import { answersHere } from "./current-session.ts"
import { Icon } from "./icons.tsx"
import { Markdown } from "./markdown.tsx"
import { attempt, notify } from "./notices.tsx"

/** The answer to one question: chosen labels, and the user's own text. */
interface Draft {
  chosen: readonly string[]
  text: string
}

/** Questions from the agent. The user answers all of them together. */
export function QuestionCard({ request, isFirst }: { request: QuestionRequest; isFirst: boolean }) {
  const { questions, document: plan } = request
  const [drafts, setDrafts] = useState<Draft[]>(() => questions.map(() => ({ chosen: [], text: "" })))
  const [isBusy, setBusy] = useState(false)
  const form = useRef<HTMLFormElement>(null)

  useEffect(() => {
    if (isFirst && !isWriting()) form.current?.querySelector("input")?.focus({ preventScroll: true })
  }, [isFirst])

  async function settle(work: () => PromiseLike<"applied" | "unknown"> | "applied" | "unknown") {
    setBusy(true)
    answersHere(request.id)
    const outcome = await attempt(async () => work())
    setBusy(false)
    if (outcome === "unknown") notify("The question was answered in another window, or its run has ended.")
    if (outcome !== undefined) leaveCard(form.current)
  }

  function submit(event: Event) {
    event.preventDefault()
    const answers = drafts.map(({ chosen, text }) => [...chosen, ...(text.trim() ? [text.trim()] : [])])
    void settle(() => api.questions.reply(request.id, answers))
  }

  const isAnswered = drafts.some(({ chosen, text }) => chosen.length > 0 || text.trim() !== "")
  return (
    <section class="card asking" aria-label="Question from the agent">
      <header>
        <Icon name="help" />
        <h2>
          {questions.length === 1 ? (questions[0]?.header ?? "Question") : `${questions.length} questions`}
        </h2>
      </header>
      {plan && (
        <div class="plan">
          <Markdown text={plan.text} />
        </div>
      )}
      <form ref={form} onSubmit={submit}>
        {questions.map((question, index) => (
          <QuestionFields
            key={`${index}`}
            name={`${request.id}-${index}`}
            question={question}
            draft={drafts[index] ?? { chosen: [], text: "" }}
            onChange={(draft) => setDrafts((before) => before.with(index, draft))}
          />
        ))}
        <div class="actions">
          <button type="submit" class="primary" disabled={isBusy || !isAnswered}>
            Answer
          </button>
          <button
            type="button"
            disabled={isBusy}
            onClick={() => settle(() => api.questions.reject(request.id))}
          >
            Dismiss
          </button>
        </div>
      </form>
    </section>
  )
}

function QuestionFields({
  name,
  question: { question, options = [], multiple = false },
  draft,
  onChange,
}: {
  name: string
  question: Question
  draft: Draft
  onChange(draft: Draft): void
}) {
  function choose(label: string, isChosen: boolean) {
    if (!multiple) return onChange({ chosen: [label], text: "" })
    const others = draft.chosen.filter((each) => each !== label)
    onChange({ ...draft, chosen: isChosen ? [...others, label] : others })
  }
  return (
    <fieldset>
      <legend>
        <Markdown text={question} />
      </legend>
      {options.map(({ label, description }) => (
        <label key={label} class="option">
          <input
            type={multiple ? "checkbox" : "radio"}
            name={name}
            checked={draft.chosen.includes(label)}
            onChange={({ currentTarget }) => choose(label, currentTarget.checked)}
          />
          <span>
            <span class="option-label">{label}</span>
            {description !== undefined && <span class="muted small">{description}</span>}
          </span>
        </label>
      ))}
      <input
        class="own-answer"
        aria-label={options.length > 0 ? "Other answer" : "Answer"}
        placeholder={options.length > 0 ? "Other answer…" : "Answer…"}
        value={draft.text}
        onInput={({ currentTarget: { value } }) =>
          onChange({ chosen: multiple || value === "" ? draft.chosen : [], text: value })
        }
      />
    </fieldset>
  )
}
