import { useEffect, useRef, useState } from "preact/hooks"
import { emptyDraft, PromptForm } from "./composer.tsx"
import { clientOf, readRoots } from "./connection.ts"
import { openSession } from "./current-session.ts"
import { Logo } from "./icons.tsx"
import { attempt } from "./notices.tsx"
import { AgentAndModel } from "./project-choices.tsx"
import { knownDirectories } from "./session-list-data.ts"

/** The page that is shown without an open session. The user starts a new session there. */
export function StartPage() {
  const [roots, setRoots] = useState<string[]>([])
  const reading = useRef<Promise<string[]>>(undefined)
  const [chosen, setChosen] = useState<string>()
  const [choice, setChoice] = useState<{ agent?: string; model?: string }>({})
  const [draft, setDraft] = useState(emptyDraft)
  const [isBusy, setBusy] = useState(false)
  const directory = chosen ?? knownDirectories.value[0] ?? roots[0] ?? ""
  const suggestions = [...new Set([...knownDirectories.value, ...roots])]

  useEffect(() => {
    reading.current = readRoots()
    void attempt(async () => setRoots((await reading.current) ?? []))
  }, [])

  async function start() {
    setBusy(true)
    const session = await attempt(async () => {
      // A quick user can send before the directories are known.
      const [root = ""] = (directory === "" && (await reading.current)) || []
      const created = await clientOf(directory || root).sessions.create(choice)
      await created.send(draft.text.trim(), { files: draft.files })
      return created
    })
    setBusy(false)
    if (session) openSession(session.id, { isNew: true })
  }

  return (
    <div class="start">
      <div class="start-box">
        <Logo />
        <h2>What should the agent do?</h2>
        <PromptForm
          label="New session"
          sendLabel="Start the session"
          placeholder="Describe a task…"
          directory={directory}
          draft={draft}
          canSend={!isBusy && chosen !== ""}
          onChange={setDraft}
          onSend={start}
        >
          <AgentAndModel
            directory={directory}
            agent={choice.agent}
            model={choice.model}
            onChange={(change) => setChoice({ ...choice, ...change })}
          />
          <span class="spacer" />
        </PromptForm>
        <label class="directory">
          <span class="muted small">Directory</span>
          <input
            list="directories"
            value={directory}
            spellcheck={false}
            onChange={({ currentTarget }) => {
              setChosen(currentTarget.value.trim())
              setChoice({})
            }}
          />
        </label>
        <datalist id="directories">
          {suggestions.map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
        <p class="muted small keys-hint">
          Press <kbd>?</kbd> for the keyboard shortcuts.
        </p>
      </div>
    </div>
  )
}
