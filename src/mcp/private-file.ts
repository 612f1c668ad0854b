import { randomBytes } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { parseJson } from "../util/json.ts"

/** What a file of ours holds. Undefined: it is missing, or no JSON. */
export function readPrivateFile(path: string): unknown {
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return undefined
    throw error
  }
  const parsed = parseJson(text)
  return parsed.ok ? parsed.value : undefined
}

/** Writes it whole, for the person alone. Nobody ever reads half of it. Throws `TackleError` with the code. */
export function writePrivateFile(path: string, value: unknown, code: string): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600, flag: "wx" })
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw new TackleError(
      `${path} cannot be written (${errorMessage(error)}). Check the rights of its directory.`,
      { code, recoverable: false, cause: error },
    )
  }
}
