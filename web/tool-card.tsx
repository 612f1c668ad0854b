import { useEffect, useState } from "preact/hooks"
import type { ToolPart } from "../src/schema/part.ts"
import { showInvisible } from "../src/util/invisible.ts"
import { type CallSummary, formatterResults, summarizeCall, todoList } from "../src/view/call-summary.ts"
import { isActive, isOnline } from "./connection.ts"
import { askedCalls, loadSubagent, state } from "./current-session.ts"
import { DiffView } from "./diff-view.tsx"
import { Icon, type IconName, Spinner } from "./icons.tsx"
import { memo } from "./memo.ts"
import { Message } from "./message.tsx"
import { Output } from "./output.tsx"

/**
 * A call: one line that expands to show its command, output or changes. `nested` contains the calls that this call
 * made.
 */
export const ToolCard = memo(
  ({ part, nested, worktree }: { part: ToolPart; nested: readonly ToolPart[]; worktree: string }) => {
    const summary = summarizeCall(part, worktree)
    const [choice, setChoice] = useState<boolean>()
    const isOpen = choice ?? opensItself(part, summary)
    const subject = showInvisible(summary.subject.split("\n")[0] ?? "")
    return (
      <div class={`tool ${summary.outcome}`}>
        <button type="button" class="tool-head" aria-expanded={isOpen} onClick={() => setChoice(!isOpen)}>
          <Outcome outcome={summary.outcome} />
          <span class="tool-name">{summary.tool}</span>
          <span class="tool-subject">{subject}</span>
          <span class="tool-details">{summary.details.join(" · ")}</span>
          {summary.fraction !== undefined && <progress value={summary.fraction} aria-label="Progress" />}
          <span class="chevron">
            <Icon name="down" />
          </span>
        </button>
        {isOpen && (
          <div class="tool-body">
            <Body part={part} worktree={worktree} />
            {nested.map((call) => (
              <ToolCard key={call.id} part={call} nested={noCalls} worktree={worktree} />
            ))}
          </div>
        )}
      </div>
    )
  },
)

const noCalls: readonly ToolPart[] = []

const outcomes: Readonly<
  Record<Exclude<CallSummary["outcome"], "pending" | "running">, { icon: IconName; label: string }>
> = {
  completed: { icon: "check", label: "done" },
  warning: { icon: "warning", label: "needs attention" },
  refused: { icon: "refused", label: "refused" },
  error: { icon: "error", label: "failed" },
}

function Outcome({ outcome }: Pick<CallSummary, "outcome">) {
  if (outcome === "pending" || outcome === "running")
    return (
      <>
        <Spinner />
        <span class="visually-hidden">running</span>
      </>
    )
  const { icon, label } = outcomes[outcome]
  return (
    <>
      <Icon name={icon} />
      <span class="visually-hidden">{label}</span>
    </>
  )
}

/**
 * Returns true for calls that are expanded without a click: running commands and subagents, file changes, to-do lists
 * and failures.
 */
function opensItself({ tool, callID, state }: ToolPart, { outcome }: CallSummary): boolean {
  if (state.status === "pending") return false
  // The request's card already shows the command.
  if (outcome === "running")
    return tool === "task" || (tool === "bash" && !askedCalls.value.split(" ").includes(callID))
  return (
    outcome === "warning" ||
    outcome === "error" ||
    typeof state.metadata?.diff === "string" ||
    tool === "todowrite"
  )
}

function Body({ part, worktree }: { part: ToolPart; worktree: string }) {
  const { tool, state } = part
  const { input } = state
  const metadata = state.status === "pending" ? {} : (state.metadata ?? {})
  const todos = todoList(part)
  const diff = typeof metadata.diff === "string" ? metadata.diff : undefined
  // The result of a subagent is its last message.
  const hasSubagent = tool === "task" && typeof metadata.sessionID === "string"
  return (
    <>
      {typeof input.command === "string" && (
        <pre class="command" tabIndex={0} role="region" aria-label="Command">
          {showInvisible(input.command)}
        </pre>
      )}
      {hasSubagent && <Subagent id={String(metadata.sessionID)} />}
      {state.status === "pending" && state.raw !== "" && <Output text={state.raw} label="Arguments" />}
      {diff !== undefined && diff !== "" && <DiffView diff={diff} worktree={worktree} />}
      {todos.length > 0 && (
        <ul class="todo-lines">
          {todos.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
      {state.status === "running" && typeof metadata.output === "string" && (
        <Output text={metadata.output} label="Output so far" />
      )}
      {state.status === "completed" && diff === undefined && todos.length === 0 && !hasSubagent && (
        <Output text={state.output} from={tool === "bash" ? "end" : "start"} label={`Output of ${tool}`} />
      )}
      {state.status === "completed" &&
        formatterResults(state, worktree).map(({ text, problem }) => (
          <p key={text} class={problem ? "problem" : "muted small"}>
            {text}
          </p>
        ))}
      {state.status === "error" && <Output text={state.error} from="start" label="Error" />}
      {state.status === "completed" &&
        state.attachments?.map(({ url, mime, filename }) =>
          url.startsWith("data:image/") ? (
            <img key={url} class="attachment" src={url} alt={filename ?? "Result of the call"} />
          ) : (
            <p key={url} class="muted small">
              {filename ?? url} ({mime})
            </p>
          ),
        )}
    </>
  )
}

/** A subagent's messages. */
function Subagent({ id }: { id: string }) {
  const isFollowed = isActive.value && isOnline.value
  useEffect(() => {
    if (isFollowed) void loadSubagent(id)
  }, [id, isFollowed])
  const subagent = state.value?.subagents.get(id)
  if (!subagent || subagent.messages.length === 0) return null
  return (
    <section class="subagent" aria-label={`Subagent ${subagent.agent}`}>
      {subagent.messages.map((item) => (
        <Message key={item.message.id} item={item} worktree={state.value?.session.worktree ?? ""} />
      ))}
    </section>
  )
}
