import type { Command } from "commander"
import { dataPaths } from "../../engine/data-directory.ts"
import { createCredentials } from "../../model/credentials.ts"
import { httpFetch } from "../../model/http-fetch.ts"
import { findLocalServers } from "../../model/list-models.ts"
import { modelName, type ProviderConfig, parseModelName, type ToolCalling } from "../../model/model.ts"
import { toProviderError } from "../../model/provider-error.ts"
import { toolPolicyOf } from "../../model/provider-table.ts"
import { createModels } from "../../model/providers.ts"
import { useNetworkSettings } from "../../model/proxy.ts"
import { checkTools, type ToolFinding } from "../../model/tool-check.ts"
import { openToolSupport } from "../../model/tool-support.ts"
import type { ModelRef } from "../../schema/message.ts"
import { counted } from "../../util/words.ts"
import { visible } from "../../view/visible.ts"
import { exitCode } from "../process/exit.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { openTackle } from "../workspace/engine.ts"
import { type FormatFlags, openWorkspace, type Workspace } from "../workspace/workspace.ts"
import { formatFlag, jsonFlag, projectFlags } from "./flags.ts"

/** Defines `tackle models`. */
export function defineModels(models: Command): void {
  projectFlags(models)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .option(
      "--forget-tools <model>",
      'offer tools again to a model whose server rejected them; "all" selects all of these models',
    )
    .action(listModels)
  models
    .command("check")
    .description("test how a server handles tools; accepts the flags of `tackle models`")
    .argument("<model>", "model to test, as provider/model")
    .action((name: string, _flags: object, command: Command) => checkModel(name, command.optsWithGlobals()))
}

/** Flags for `tackle models`. With `forgetTools`, the command lists no models. */
export interface ModelsFlags extends FormatFlags {
  /** Name of a model, or `all`. */
  forgetTools?: string
}

/** Runs `tackle models`, which lists the configured models and the model servers on common local ports. */
export async function listModels(flags: ModelsFlags): Promise<void> {
  const workspace = await openWorkspace(flags)
  if (flags.forgetTools !== undefined) return forgetTools(workspace, flags.forgetTools)
  const toolSupport = openToolSupport(workspace.dataDirectory)
  const tackle = await openTackle(workspace, {})
  try {
    const models = tackle.models()
    const servers = await findLocalServers({ fetch, signal: AbortSignal.timeout(2_000) })
    const current = workspace.config.config.model
    const providers = Object.entries(workspace.config.config.provider ?? {}).map(([id, provider]) => ({
      id,
      baseURL: provider.options?.baseURL,
      models: Object.keys(provider.models ?? {}).length,
    }))
    const signedIn = await tackle.credentials.providers()
    if (flags.format === "json")
      return printJson({ current, models, providers: workspace.hide(providers), signedIn, servers })
    for (const { ref, name, limit } of models) {
      const chosen = modelName(ref) === current ? " (configured)" : ""
      const context = limit.context === undefined ? "" : `, ${limit.context} tokens`
      const refused = toolSupport.refused(modelName(ref)) === undefined ? "" : ", tools as text"
      printLine(`${modelName(ref)}  ${name}${context}${refused}${chosen}`)
    }
    for (const { name, baseURL, models: found } of servers) {
      printLine(`${name} at ${baseURL}: ${found.length > 0 ? found.join(", ") : "no models"}`)
    }
    if (providers.length > 0) printLine("\nConfigured providers:")
    for (const { id, baseURL, models: count } of providers) {
      const address = baseURL === undefined ? "" : ` at ${workspace.hide(String(baseURL))}`
      printLine(`  ${visible(`${id}${address}`)}, ${counted(count, "model")} in the config`)
    }
    if (signedIn.length > 0) printLine(`Signed in to: ${signedIn.map(visible).join(", ")}`)
    printLine(
      "\nWith an API key that is saved or in the environment, any openai/…, anthropic/… or google/… model also works.",
    )
  } finally {
    await tackle.close()
  }
}

/** Deletes the record that a model's server rejected tools. An updated or restarted server may support tools. */
function forgetTools(workspace: Workspace, name: string): void {
  const forgotten = openToolSupport(workspace.dataDirectory).forget(name === "all" ? undefined : name)
  if (forgotten.length === 0)
    printLine(`No rejected tools are recorded for ${name === "all" ? "any model" : name}.`)
  for (const model of forgotten) printLine(`Tools will be offered to ${model} again.`)
}

/** Time limit in ms for all requests together. A local server may have to load the model first. */
const limitMs = 300_000

/**
 * Runs `tackle models check`, which tests a server's support for tools and shows how Tackle offers tools to the model.
 * Sets exit code 1 unless every test succeeds. Sends at most four requests, which may cost money.
 */
export async function checkModel(name: string, flags: FormatFlags): Promise<void> {
  const ref = parseModelName(name)
  const workspace = await openWorkspace(flags)
  const restoreNetwork = await useNetworkSettings(workspace.environment)
  const config = workspace.config.config.provider ?? {}
  const { environment, dataDirectory } = workspace
  const credentials = createCredentials({ environment, authFile: dataPaths(dataDirectory).auth })
  // Keeps the events, because the check counts the pieces in which the server streams arguments.
  const shared = { credentials, environment, fetch: httpFetch, keepEvents: true }
  try {
    // Throws if the model is unknown.
    await createModels({ ...shared, config }).get(ref)
    const model = await createModels({ ...shared, config: withoutPolicy(config, ref) }).get(ref)
    const language = await model.language()
    const findings = await checkTools(language, AbortSignal.timeout(limitMs)).catch((error: unknown) => {
      throw toProviderError(error, ref)
    })
    const memory = openToolSupport(dataDirectory)
    const { policy, key } = toolPolicyOf(
      { id: ref.providerID, config: config[ref.providerID] ?? {} },
      ref.modelID,
    )
    const used = usedPolicy(policy, findings, memory.refused(modelName(ref)) !== undefined)
    if (flags.format === "json") printJson({ model: modelName(ref), findings, policy, used })
    else printFindings(findings, { policy, used, key })
    if (findings.some(({ holds }) => holds !== true)) process.exitCode = exitCode.failed
  } finally {
    restoreNetwork()
  }
}

/** Returns the config with the policy for this model set to native tools. */
function withoutPolicy(
  config: Readonly<Record<string, ProviderConfig>>,
  { providerID, modelID }: ModelRef,
): Record<string, ProviderConfig> {
  const provider = config[providerID] ?? {}
  const model = { ...provider.models?.[modelID], toolCalling: "native" as const }
  return { ...config, [providerID]: { ...provider, models: { ...provider.models, [modelID]: model } } }
}

/** Returns the policy that takes effect with this server. */
function usedPolicy(policy: ToolCalling, findings: readonly ToolFinding[], refused: boolean): ToolCalling {
  if (policy !== "auto") return policy
  return refused || findings[0]?.holds === false ? "synthetic" : "native"
}

function printFindings(
  findings: readonly ToolFinding[],
  { policy, used, key }: { policy: ToolCalling; used: ToolCalling; key: string },
): void {
  for (const { name, holds, detail } of findings) {
    const mark = holds === undefined ? "?" : holds ? "yes" : "no"
    printLine(`${mark.padEnd(4)}${name}: ${detail}`)
  }
  printLine(
    `\nPolicy: ${policy}${policy === used ? "" : `, which means ${used} with this server`}. To change it, set ${key}.`,
  )
  const callsNothing = findings.some(({ name, holds }) => name === "returns tool_calls" && holds === false)
  if (used === "native" && callsNothing) {
    printLine(
      `The server accepts tools but returns no calls. Set ${key} to "synthetic" to read calls from the text.`,
    )
  }
}
