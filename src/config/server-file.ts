import { randomBytes } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { dirname, extname, join } from "node:path"
import type { McpConfig } from "../mcp/client/config.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"
import { ownConfigFiles } from "./config-files.ts"
import { ConfigError } from "./errors.ts"
import { insertProperty } from "./insert-property.ts"
import { parseJsonc } from "./jsonc.ts"
import type { Location } from "./location.ts"
import { entryOf } from "./node.ts"

/**
 * Writes the server into the config file of the project, or of the person, and returns its path: into the first that there
 * is, else a new one. Comments and all that stands there stay. Throws `UsageError` for a server that is there already and
 * for a file in TOML, `ConfigError` for one that is malformed, `TackleError` where it cannot be written.
 */
export async function addServer(
  location: Location,
  scope: "project" | "user",
  [id, server]: [string, McpConfig[string]],
): Promise<string> {
  const candidates = ownConfigFiles(location, scope)
  const [first = ""] = candidates
  const path = candidates.find((candidate) => existsSync(candidate)) ?? first
  if (extname(path) === ".toml") {
    const { stringify } = await import("smol-toml")
    const table = stringify({ mcp: { [id]: server } })
    throw new UsageError(`${path} is TOML, which is not edited for you. Add to it:\n${table.trimEnd()}`)
  }
  const text = existsSync(path) ? readFileSync(path, "utf8") : ""
  const changed = await withServer(text, path, [id, server])
  try {
    mkdirSync(dirname(path), { recursive: true })
    replaceFile(existsSync(path) ? realpathSync(path) : path, changed)
  } catch (error) {
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the rights of its directory.`,
      {
        code: "config.write",
        recoverable: false,
        cause: error,
      },
    )
  }
  return path
}

async function withServer(
  text: string,
  path: string,
  [id, server]: [string, McpConfig[string]],
): Promise<string> {
  const tree = await parseJsonc(text, path)
  const servers = entryOf(tree, "mcp")
  if (entryOf(servers?.value, id))
    throw new UsageError(`${path} has an MCP server "${id}" already. Change it there, or take another name.`)
  if (servers && servers.value.kind !== "object")
    throw new ConfigError([{ place: servers.place, text: "mcp: expected an object ({…}). Mend it first." }])
  return servers
    ? await insertProperty(text, ["mcp"], { key: id, value: server })
    : await insertProperty(text, [], { key: "mcp", value: { [id]: server } })
}

/** Nobody ever reads half of it, and its rights stay. */
function replaceFile(path: string, text: string): void {
  const temporary = join(dirname(path), `.${randomBytes(6).toString("hex")}.tmp`)
  try {
    writeFileSync(temporary, text, { flag: "wx" })
    if (existsSync(path)) chmodSync(temporary, statSync(path).mode & 0o777)
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}
