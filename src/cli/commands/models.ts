import { findLocalServers } from "../../model/local.ts"
import { modelName } from "../../model/model.ts"
import { openToolMemory } from "../../model/tool-memory.ts"
import { openTackle } from "../open-tackle.ts"
import { type FormatFlags, openPlace, type Place } from "../place.ts"
import { printJson, printLine } from "../print.ts"

/** With `forgetTools` no models are listed. */
export interface ModelsFlags extends FormatFlags {
  /** A model's name, or `all`. */
  forgetTools?: string
}

/** `tackle models`: those that are configured, and servers found on the usual ports of this machine. */
export async function listModels(flags: ModelsFlags): Promise<void> {
  const place = await openPlace(flags)
  if (flags.forgetTools !== undefined) return forgetTools(place, flags.forgetTools)
  const toolMemory = openToolMemory(place.dataDirectory)
  const tackle = await openTackle(place, {})
  try {
    const models = tackle.models()
    const servers = await findLocalServers({ fetch, signal: AbortSignal.timeout(2_000) })
    const current = place.config.config.model
    if (flags.format === "json") return printJson({ current, models, servers })
    for (const { ref, name, limit } of models) {
      const chosen = modelName(ref) === current ? " (configured)" : ""
      const context = limit.context === undefined ? "" : `, ${limit.context} tokens`
      const refused = toolMemory.refused(modelName(ref)) === undefined ? "" : ", tools as text"
      printLine(`${modelName(ref)}  ${name}${context}${refused}${chosen}`)
    }
    for (const { name, baseURL, models: found } of servers) {
      printLine(`${name} at ${baseURL}: ${found.length > 0 ? found.join(", ") : "no models"}`)
    }
    printLine("\nopenai/…, anthropic/… and google/… take any model of theirs, with a key in the environment.")
  } finally {
    await tackle.close()
  }
}

/** What a server says of tools may change with its next version or start. */
function forgetTools(place: Place, name: string): void {
  const forgotten = openToolMemory(place.dataDirectory).forget(name === "all" ? undefined : name)
  if (forgotten.length === 0) printLine(`Nothing is remembered of ${name === "all" ? "any model" : name}.`)
  for (const model of forgotten) printLine(`${model} is offered tools again.`)
}
