import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { dataPaths } from "../../engine/data-directory.ts"
import { type Credentials, createCredentials } from "../../model/credentials.ts"
import type { LocalServer } from "../../model/list-models.ts"
import { providerTable } from "../../model/provider-table.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import { counted } from "../../util/words.ts"
import { visible } from "../../view/visible.ts"
import { warn } from "../process/notice.ts"
import { askForKey, question } from "../process/question.ts"
import type { Workspace } from "../workspace/workspace.ts"

/** Name of the built-in model, which is always available. */
export const offline = "tackle/offline"

/**
 * Chooses the model for a run if none is configured. In a terminal, offers each local model server that the user has
 * not declined before. Saves an accepted model in the user's config unless the file already exists. Returns the
 * built-in model if the user declines every server, or without a terminal. Never uses a local server without asking,
 * because any local program could listen on its port.
 */
export async function chooseModel(workspace: Workspace): Promise<string> {
  const remembered = join(workspace.dataDirectory, "local-servers.json")
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return offline
  const { findLocalServers } = await import("../../model/list-models.ts")
  const declined = readDeclined(remembered)
  const servers = await findLocalServers({ fetch, signal: AbortSignal.timeout(1_000) })
  for (const server of servers) {
    if (declined.includes(server.baseURL)) continue
    const answer = await offer(server)
    if (answer === undefined) continue
    if (answer !== refusal) return useServer(workspace, server, answer)
    declined.push(server.baseURL)
    write(remembered, { declined })
  }
  return offline
}

/** Value of the choice that refuses a server. */
const refusal = ""

/**
 * Returns the chosen model, or {@link refusal} if the user declines the server. Returns undefined if the user presses
 * Escape.
 */
function offer(server: LocalServer): Promise<string | undefined> {
  return question(({ select }, signal) =>
    select({
      message: `No model is configured, but ${server.name} is running at ${server.baseURL}. Use one of its models?`,
      output: process.stderr,
      signal,
      options: [
        ...server.models.slice(0, 20).map((model) => ({ value: model, label: model })),
        { value: refusal, label: "no, and do not ask again" },
      ],
    }),
  )
}

/**
 * Saves a model from a local server as {@link saveModel} does, and uses the model in this process. Returns the model as
 * `provider/model`.
 */
async function useServer(workspace: Workspace, server: LocalServer, model: string): Promise<string> {
  const id = server.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")
  const provider = { [id]: { options: { baseURL: server.baseURL }, models: { [model]: {} } } }
  await saveModel(workspace, { model: `${id}/${model}`, provider })
  Object.assign(workspace.config.config, { provider: { ...workspace.config.config.provider, ...provider } })
  return `${id}/${model}`
}

/**
 * Saves a model, and its provider if given, in the user's config. Creates the file, or adds a model without a provider
 * to an existing file. Otherwise, shows the user what to add.
 */
async function saveModel(
  workspace: Workspace,
  config: { model: string; provider?: Record<string, unknown> },
): Promise<void> {
  const home = workspace.environment.XDG_CONFIG_HOME || join(workspace.home, ".config")
  const path = join(home, "tackle", "tackle.json")
  const isSaved = existsSync(path)
    ? config.provider === undefined && (await addModel(path, config.model))
    : true
  if (!existsSync(path)) write(path, config)
  const text = JSON.stringify(config, null, 2)
  process.stderr.write(
    isSaved ? `Saved in ${path}.\n` : `To keep this choice, add these settings to ${path}:\n${text}\n`,
  )
}

/** Adds the key `model` to an existing config file. Returns false if the file cannot be changed. */
async function addModel(path: string, model: string): Promise<boolean> {
  const { insertProperty } = await import("../../config/add-server.ts")
  try {
    const text = readFileSync(path, "utf8")
    writeFileSync(path, await insertProperty(text, [], { key: "model", value: model }))
    return true
  } catch {
    return false
  }
}

function readDeclined(path: string): string[] {
  if (!existsSync(path)) return []
  const parsed = parseJson(readFileSync(path, "utf8"))
  if (!parsed.ok || !isRecord(parsed.value) || !Array.isArray(parsed.value.declined)) return []
  return parsed.value.declined.filter((entry) => typeof entry === "string")
}

function write(path: string, value: unknown): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 })
}

/** An option in the question for the first model. `choose` returns undefined if the user presses Escape. */
interface Offer {
  label: string
  hint: string
  choose(): Promise<string | undefined>
}

/**
 * Asks the user to choose the first model: one from a local server, one from a provider with an API key, or the
 * built-in model. Saves an entered key, and saves the choice as {@link saveModel} does, unless it is the built-in
 * model. Returns the model as `provider/model`.
 */
export async function setUpModel(workspace: Workspace): Promise<string> {
  const { findLocalServers } = await import("../../model/list-models.ts")
  const servers = await findLocalServers({ signal: AbortSignal.timeout(1_000) })
  const credentials = credentialsOf(workspace)
  const offers: Offer[] = [
    ...servers.map((server) => ({
      label: server.name,
      hint: `${counted(server.models.length, "model")} at ${server.baseURL}`,
      choose: () => chooseServerModel(workspace, server),
    })),
    ...(await Promise.all(
      providerTable
        .filter(({ keyVariables }) => keyVariables.length > 0)
        .map(async (provider) => {
          const variable = provider.keyVariables.find((name) => workspace.environment[name]?.trim())
          const without = (await hasKey(credentials, provider.id)) ? "signed in" : "needs an API key"
          const hint = variable === undefined ? without : `${variable} is set`
          return { label: provider.name, hint, choose: () => chooseProviderModel(workspace, provider) }
        }),
    )),
    {
      label: "Try it without a model",
      hint: "a demo; Tackle asks again at the next start",
      choose: async () => offline,
    },
  ]
  const options = offers.map(({ label, hint }, value) => ({ value, label, hint }))
  const local =
    servers.length > 0 ? "" : " To see a local model server here, start it, and then start Tackle again."
  const message = `Which model should Tackle use?${local}`
  for (;;) {
    const chosen = await question(({ select }, signal) =>
      select({ message, options, output: process.stderr, signal }),
    )
    const model = chosen === undefined ? offline : await offers[chosen]?.choose()
    // Escape returns to the list of options.
    if (model !== undefined) return model
  }
}

/** Returns true if the auth file has a key for the provider. If the file is invalid, choosing the provider throws. */
async function hasKey(credentials: Credentials, providerID: string): Promise<boolean> {
  const key = await credentials.key(providerID, []).catch(() => undefined)
  return key !== undefined
}

async function chooseServerModel(workspace: Workspace, server: LocalServer): Promise<string | undefined> {
  const id = await chooseModelID(server.models)
  return id === undefined ? undefined : useServer(workspace, server, id)
}

async function chooseProviderModel(
  workspace: Workspace,
  { id: providerID, name, keyVariables, baseURLVariable }: (typeof providerTable)[number],
): Promise<string | undefined> {
  const { listModels } = await import("../../model/list-models.ts")
  const credentials = credentialsOf(workspace)
  const baseURL = baseURLVariable === undefined ? undefined : workspace.environment[baseURLVariable]
  const known = await credentials.key(providerID, keyVariables)
  let key = known
  for (;;) {
    key ??= await askForKey(`API key for ${name}`)
    if (key === undefined) return undefined
    const list = await listModels({ providerID, key, baseURL, signal: AbortSignal.timeout(10_000) })
    if (list.kind === "refused") {
      warn(`${name} does not accept the key.`)
      key = undefined
      continue
    }
    if (list.kind === "unknown") warn(`${name} did not list its models (${visible(list.reason)}).`)
    const id =
      list.kind === "models" && list.ids.length > 0 ? await chooseModelID(list.ids) : await askForModel(name)
    if (id === undefined) return undefined
    if (key !== known) await credentials.save(providerID, { type: "api", key })
    const model = `${providerID}/${id}`
    await saveModel(workspace, { model })
    return model
  }
}

function credentialsOf({ environment, dataDirectory }: Workspace): Credentials {
  return createCredentials({ environment, authFile: dataPaths(dataDirectory).auth })
}

function chooseModelID(ids: readonly string[]): Promise<string | undefined> {
  const options = ids.map((id) => ({ value: id, label: visible(id) }))
  return question(({ autocomplete }, signal) =>
    autocomplete({
      message: "Model (type to filter)",
      options,
      maxItems: 10,
      output: process.stderr,
      signal,
    }),
  )
}

function askForModel(name: string): Promise<string | undefined> {
  const validate = (text: string | undefined) => (text?.trim() ? undefined : "The id cannot be empty.")
  return question(({ text }, signal) =>
    text({ message: `Model id at ${name}`, validate, output: process.stderr, signal }),
  )
}
