import { dataPlaces } from "../../engine/data-directory.ts"
import { toolPolicyOf } from "../../model/configured-provider.ts"
import { createCredentials } from "../../model/credentials.ts"
import { httpFetch } from "../../model/http-fetch.ts"
import { modelName, type ProviderConfig, parseModelName, type ToolCalling } from "../../model/model.ts"
import { toProviderError } from "../../model/provider-error.ts"
import { createModels } from "../../model/providers.ts"
import { useNetworkSettings } from "../../model/proxy.ts"
import { checkTools, type ToolFinding } from "../../model/tool-check.ts"
import { openToolMemory } from "../../model/tool-memory.ts"
import type { ModelRef } from "../../schema/message.ts"
import { exitCode } from "../exit.ts"
import { type FormatFlags, openPlace } from "../place.ts"
import { printJson, printLine } from "../print.ts"

/** For all requests together: a local model may have to be loaded first. */
const limitMs = 300_000

/**
 * `tackle models check`: what a live server does with tools, and how Tackle gives it tools. Exit code 1 where something
 * does not hold. Asks the server four times at most, which may cost money.
 */
export async function checkModel(name: string, flags: FormatFlags): Promise<void> {
  const ref = parseModelName(name)
  const place = await openPlace(flags)
  const restoreNetwork = await useNetworkSettings(place.environment)
  const config = place.config.config.provider ?? {}
  const { environment, dataDirectory } = place
  const credentials = createCredentials({ environment, authFile: dataPlaces(dataDirectory).auth })
  const shared = { credentials, environment, fetch: httpFetch }
  try {
    // Throws for a name that the config does not know.
    await createModels({ ...shared, config }).get(ref)
    const model = await createModels({ ...shared, config: withoutPolicy(config, ref) }).get(ref)
    const language = await model.language()
    const findings = await checkTools(language, AbortSignal.timeout(limitMs)).catch((error: unknown) => {
      throw toProviderError(error, ref)
    })
    const memory = openToolMemory(dataDirectory)
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

/** The config with this model's tools going to the server, whatever it says of them. */
function withoutPolicy(
  config: Readonly<Record<string, ProviderConfig>>,
  { providerID, modelID }: ModelRef,
): Record<string, ProviderConfig> {
  const provider = config[providerID] ?? {}
  const model = { ...provider.models?.[modelID], toolCalling: "native" as const }
  return { ...config, [providerID]: { ...provider, models: { ...provider.models, [modelID]: model } } }
}

/** What the policy comes to with this server. */
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
  printLine(`\nPolicy: ${policy}${policy === used ? "" : `, which is ${used} with this server`} (${key}).`)
  const callsNothing = findings.some(({ name, holds }) => name === "returns tool_calls" && holds === false)
  if (used === "native" && callsNothing) {
    printLine(
      `The server takes tools and makes no calls. Set ${key} to "synthetic" to have them read from the text.`,
    )
  }
}
