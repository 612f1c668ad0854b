import { signal } from "@preact/signals"
import type { ModelInfo } from "../src/model/model.ts"
import { clientOf } from "./connection.ts"

/** The agents and models of a project. */
interface Choices {
  agents: { name: string; description?: string }[]
  models: (Pick<ModelInfo, "limit"> & { id: string; name: string })[]
}

const known = signal<ReadonlyMap<string, Choices>>(new Map())
const loading = new Set<string>()

/**
 * Returns the choices for the project in a directory, or undefined until they are loaded. The first call starts loading
 * them.
 */
export function choicesOf(directory: string): Choices | undefined {
  const found = known.value.get(directory)
  // The directory is empty until the page has loaded the server's directories.
  if (!found && directory !== "" && !loading.has(directory)) {
    loading.add(directory)
    void load(directory).finally(() => loading.delete(directory))
  }
  return found
}

async function load(directory: string): Promise<void> {
  const client = clientOf(directory)
  try {
    const [agents, models] = await Promise.all([client.agents, client.models()])
    const choices = {
      agents: [...agents.values()].filter(({ mode }) => mode !== "subagent"),
      models: models.map(({ ref, name, limit }) => ({ id: `${ref.providerID}/${ref.modelID}`, name, limit })),
    }
    known.value = new Map(known.value).set(directory, choices)
  } catch {
    // If loading fails, the choice contains only the current value. A wrong directory is reported when the session is
    // created.
    known.value = new Map(known.value).set(directory, { agents: [], models: [] })
  }
}

/** Choices of the agent and the model. Undefined values mean the project's defaults. */
export function AgentAndModel({
  directory,
  agent,
  model,
  onChange,
}: {
  directory: string
  agent: string | undefined
  model: string | undefined
  onChange(change: { agent?: string; model?: string }): void
}) {
  const { agents = [], models = [] } = choicesOf(directory) ?? {}
  return (
    <>
      <Choice
        label="Agent"
        value={agent}
        items={agents.map(({ name, description }) => ({ id: name, name, description }))}
        onChange={(value) => onChange({ agent: value })}
      />
      <Choice label="Model" value={model} items={models} onChange={(value) => onChange({ model: value })} />
    </>
  )
}

interface ChoiceProps {
  label: string
  value: string | undefined
  items: readonly { id: string; name: string; description?: string }[]
  onChange(value: string): void
}

function Choice({ label, value, items, onChange }: ChoiceProps) {
  const isKnown = items.some(({ id }) => id === value)
  return (
    <select
      class="choice"
      aria-label={label}
      title={label}
      value={value ?? ""}
      onChange={({ currentTarget }) => currentTarget.value !== "" && onChange(currentTarget.value)}
    >
      {value === undefined && <option value="">Default {label.toLowerCase()}</option>}
      {value !== undefined && !isKnown && <option value={value}>{value}</option>}
      {items.map(({ id, name, description }) => (
        <option key={id} value={id} title={description}>
          {name}
        </option>
      ))}
    </select>
  )
}
