import { findLocalServers } from "../../model/local.ts"
import { modelName } from "../../model/model.ts"
import { printJson, printLine } from "../print.ts"
import { type FormatFlags, openPlace, openTackle } from "../setup.ts"

/** `tackle models`: those that are configured, and servers found on the usual ports of this machine. */
export async function listModels(flags: FormatFlags): Promise<void> {
  const place = await openPlace(flags)
  const tackle = await openTackle(place, {})
  try {
    const models = tackle.models()
    const servers = await findLocalServers({ fetch, signal: AbortSignal.timeout(2_000) })
    const current = place.config.config.model
    if (flags.format === "json") return printJson({ current, models, servers })
    for (const { ref, name, limit } of models) {
      const chosen = modelName(ref) === current ? " (configured)" : ""
      const context = limit.context === undefined ? "" : `, ${limit.context} tokens`
      printLine(`${modelName(ref)}  ${name}${context}${chosen}`)
    }
    for (const { name, baseURL, models: found } of servers) {
      printLine(`${name} at ${baseURL}: ${found.length > 0 ? found.join(", ") : "no models"}`)
    }
    printLine("\nopenai/…, anthropic/… and google/… take any model of theirs, with a key in the environment.")
  } finally {
    await tackle.close()
  }
}
