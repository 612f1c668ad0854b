import { useEffect, useState } from "preact/hooks"
import type { Grant } from "../src/schema/permission.ts"
import { showInvisible } from "../src/util/invisible.ts"
import { rootOf } from "../src/view/root-session.ts"
import { clientOf } from "./connection.ts"
import { state } from "./current-session.ts"
import { attempt } from "./notices.tsx"

/** Describes what a permission allows: the words before its pattern, and the words for all patterns. */
const meanings: Readonly<Record<string, readonly [some: string, all: string]>> = {
  bash: ["Run", "Run any command"],
  doom_loop: ["Repeat the call of", "Repeat any call"],
  edit: ["Change", "Change any file"],
  external_directory: ["Use files outside the project in", "Use any file outside the project"],
  glob: ["Find files like", "Find any file"],
  grep: ["Search for", "Search for any text"],
  list: ["List", "List any directory"],
  network: ["Connect to", "Connect to any server"],
  private_network: ["Connect to the private address", "Connect to any private address"],
  read: ["Read", "Read any file"],
  sandbox_escape: ["Run without the sandbox", "Run any command without the sandbox"],
  skill: ["Load the skill", "Load any skill"],
  task: ["Start the subagent", "Start any subagent"],
  webfetch: ["Read the page", "Read any web page"],
  websearch: ["Search the web for", "Search the web for anything"],
}

/** Lists the user's grants in the open session's project. The user can revoke each grant. */
export function GrantList() {
  const { id, parentID, directory } = state.value?.session ?? { id: "", directory: "" }
  const [grants, setGrants] = useState<readonly Grant[]>()
  const [root, setRoot] = useState(id)

  async function load() {
    const client = clientOf(directory)
    // Grants for a session are stored for its root session, and also apply to the sessions of subagents.
    setRoot((await rootOf(client, { id, parentID })) ?? id)
    setGrants(await client.grants())
  }
  useEffect(() => void attempt(load), [])

  async function revoke(grant: Grant) {
    await attempt(() => clientOf(directory).revoke([grant.id]))
    await attempt(load)
    document.querySelector<HTMLElement>("dialog .grants button, dialog .actions button")?.focus()
  }

  if (!grants) return <p class="muted">Loading…</p>
  if (grants.length === 0)
    return <p>Nothing. The agent asks each time, unless a rule in the config decides.</p>
  return (
    <>
      <p class="muted small">
        The agent may do this without asking. A <code>*</code> stands for any text.
      </p>
      <ul class="grants">
        {grants.map((grant) => (
          <li key={grant.id}>
            <div>
              <Meaning grant={grant} />
              <p class="muted small">
                {scopeOf(grant, root)} · since {new Date(grant.time.created).toLocaleDateString()}
              </p>
            </div>
            <button type="button" aria-label={`Revoke ${textOf(grant)}`} onClick={() => revoke(grant)}>
              Revoke
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

function Meaning({ grant }: { grant: Grant }) {
  const { text, pattern } = meaningOf(grant)
  return (
    <p>
      {text} {pattern && <code>{pattern}</code>}
    </p>
  )
}

function textOf(grant: Grant): string {
  const { text, pattern = "" } = meaningOf(grant)
  return `${text} ${pattern}`.trim()
}

function meaningOf({ permission, pattern, action }: Grant): { text: string; pattern?: string } {
  const tool = `Use the tool ${permission}`
  const [some, all] = meanings[permission] ?? [`${tool} for`, tool]
  const prefix = action === "deny" ? "Refused: " : ""
  return pattern === "*" ? { text: prefix + all } : { text: prefix + some, pattern: showInvisible(pattern) }
}

function scopeOf({ scope, sessionID }: Grant, root: string): string {
  if (scope === "project") return "in all sessions of this project"
  return sessionID === root ? "in this session" : "in another session"
}
