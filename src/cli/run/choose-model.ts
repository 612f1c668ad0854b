import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { LocalServer } from "../../model/local.ts"
import { isRecord, parseJson } from "../../util/json.ts"
import type { Workspace } from "../workspace/workspace.ts"

/** Name of the built-in model, which is always available. */
export const offline = "tackle/offline"

/**
 * Chooses the model of a run if none is configured. In a terminal, offers each local model server once. Saves an
 * accepted model in the user's config and remembers a refusal. Never uses a local server without asking, because any
 * local program could listen on its port. Otherwise returns the built-in model.
 */
export async function chooseModel(workspace: Workspace): Promise<string> {
  const remembered = join(workspace.dataDirectory, "local-servers.json")
  if (process.stdin.isTTY !== true || process.stderr.isTTY !== true) return offline
  const { findLocalServers } = await import("../../model/local.ts")
  const declined = readDeclined(remembered)
  const servers = await findLocalServers({ fetch, signal: AbortSignal.timeout(1_000) })
  for (const server of servers) {
    if (declined.includes(server.baseURL) || server.models.length === 0) continue
    const model = await offer(server)
    if (model !== undefined) return useServer(workspace, server, model)
    declined.push(server.baseURL)
    write(remembered, { declined })
  }
  return offline
}

async function offer(server: LocalServer): Promise<string | undefined> {
  const { question } = await import("../process/question.ts")
  const choice = await question(({ select }, signal) =>
    select({
      message: `No model is configured, but ${server.name} is running at ${server.baseURL}. Use one of its models?`,
      output: process.stderr,
      signal,
      options: [
        ...server.models.slice(0, 20).map((model) => ({ value: model, label: model })),
        { value: "", label: "no, and do not ask again" },
      ],
    }),
  )
  return choice === "" ? undefined : choice
}

/** Saves a model of a local server in the user's config, and uses it in this process. Returns it as `provider/model`. */
export async function useServer(workspace: Workspace, server: LocalServer, model: string): Promise<string> {
  const id = server.name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")
  const provider = { [id]: { options: { baseURL: server.baseURL }, models: { [model]: {} } } }
  await saveModel(workspace, { model: `${id}/${model}`, provider })
  Object.assign(workspace.config.config, { provider: { ...workspace.config.config.provider, ...provider } })
  return `${id}/${model}`
}

/**
 * Saves a model, and its provider if given, in the user's config. Adds the model to an existing file. If that is not
 * possible, shows the user what to add.
 */
export async function saveModel(
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
    isSaved ? `Saved in ${path}.\n` : `To keep this choice, add these lines to ${path}:\n${text}\n`,
  )
}

/** Adds a model to a config file without one. Returns false if the file cannot be changed. */
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
