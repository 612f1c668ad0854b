import { join } from "node:path"
import type { Launch, Place, Subject, Tools } from "./subject.ts"
import { startTackleService } from "./tackle-service.ts"

const tools: Tools = {
  read: (filePath) => ({ name: "read", arguments: { filePath } }),
  bash: (command) => ({ name: "bash", arguments: { command, description: "Run the command" } }),
  write: (filePath, content) => ({ name: "write", arguments: { filePath, content } }),
}

/** The bare fetch loop that ratios refer to. */
export const floor: Subject = {
  name: "floor",
  tools,
  launch: ({ url, prompt }) => node("floor.mjs", url, prompt),
  about: () => node("bare.mjs"),
}

/** The stream parser of the provider package, without an engine. */
export const doStream: Subject = {
  name: "doStream",
  tools,
  launch: ({ url, prompt }) => node("do-stream.mjs", url, prompt),
}

/** Returns the built command as a user runs it. `command` is the path of `bin/tackle`. */
export function tackle(command: string): Subject {
  return {
    name: "tackle",
    tools,
    launch: (place) => ({
      command: process.execPath,
      // The step limit exceeds the number of calls in the longest script.
      args: [command, "run", "--auto", "--format", "json", "--max-steps", "1000", place.prompt],
      env: environment(place),
    }),
    about: (flag) => ({ command: process.execPath, args: [command, flag] }),
    terminal: (place, session) => ({
      command: process.execPath,
      args: session === undefined ? [command] : [command, "-s", session],
      env: environment(place),
    }),
    serve: (place) => startTackleService(command, place),
  }
}

function environment(place: Place): Record<string, string> {
  return {
    TACKLE_DATA_DIR: join(place.home, "data"),
    TACKLE_CONFIG_CONTENT: JSON.stringify(config(place)),
  }
}

function config({ url }: Place) {
  return {
    // Peers also run without a sandbox, which costs about 10 ms per command.
    sandbox: "off",
    model: "bench/m",
    provider: { bench: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  }
}

function node(file: string, ...args: string[]): Launch {
  return { command: process.execPath, args: [join(import.meta.dirname, file), ...args] }
}
