import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { Subject } from "../subject.ts"

/** Another agent, whose program may or may not be on this machine. */
export interface Peer {
  /** Of the program. */
  name: string
  /** `program` is the path of the executable. */
  subject(program: string): Subject
}

/** Writes a file of a peer's configuration: a text as it stands, anything else as JSON. */
export async function writeConfig(directory: string, name: string, content: unknown): Promise<void> {
  const path = join(directory, name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content))
}
