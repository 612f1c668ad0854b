import { cpSync } from "node:fs"
import { resolve } from "node:path"
import type { Script } from "../../src/testing/model-server.ts"
import { createMachine, type Machine } from "../cli/run-tackle.ts"

/** A machine whose project is a copy of the example, trusted unless told otherwise. */
export async function openExample(
  name: string,
  { script = [], trusted = true }: { script?: Script; trusted?: boolean } = {},
): Promise<Machine> {
  const machine = await createMachine({ git: true, script })
  const example = resolve(import.meta.dirname, "../../examples", name)
  cpSync(example, machine.project.directory, { recursive: true })
  if (trusted) await machine.trust()
  return machine
}

/** Returns the messages of a request to the model, as text. */
export function promptOf({ server }: Machine, index: number): string {
  return JSON.stringify(server.requests[index]?.body.messages)
}
