import { access, constants } from "node:fs/promises"
import { delimiter, join } from "node:path"
import type { Subject } from "../subject.ts"
import { claude } from "./claude.ts"
import { codex } from "./codex.ts"
import { gemini } from "./gemini.ts"
import { opencode } from "./opencode.ts"
import type { Peer } from "./peer.ts"
import { pi } from "./pi.ts"
import { qwen } from "./qwen.ts"

const peers: Peer[] = [opencode, codex, pi, gemini, qwen, claude]

/** Returns the peers whose program is in `TACKLE_BENCH_PEERS` or in the `PATH`. */
export async function findPeers(env: Record<string, string | undefined>): Promise<Subject[]> {
  const extra = env.TACKLE_BENCH_PEERS
  const directories = [
    ...(extra ? [join(extra, "node_modules/.bin")] : []),
    ...(env.PATH ?? "").split(delimiter).filter((directory) => directory !== ""),
  ]
  const found = await Promise.all(
    peers.map(async (peer) => {
      const program = await findProgram(peer.name, directories)
      return program === undefined ? [] : [peer.subject(program)]
    }),
  )
  return found.flat()
}

async function findProgram(name: string, directories: string[]): Promise<string | undefined> {
  for (const directory of directories) {
    const path = join(directory, name)
    const runs = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (runs) return path
  }
  return undefined
}
