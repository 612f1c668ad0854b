import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Subject } from "../subject.ts"

/** Another agent to compare with. Its program may not be installed on this machine. */
export interface Peer {
  /** Name of the program. */
  name: string
  /** Returns the subject. `program` is the path of the executable. */
  subject(program: string): Subject
}

/** Writes a configuration file for a peer. Writes a string unchanged and any other value as JSON. */
export async function writeConfig(directory: string, name: string, content: unknown): Promise<void> {
  const path = join(directory, name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content))
}
