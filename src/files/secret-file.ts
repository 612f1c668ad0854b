import { basename } from "node:path"

/** Templates that are made to be shared. */
const template = /\.(example|sample|template)$/i

/**
 * True for files that usually hold credentials: `.env`, `.env.local`, `.envrc`, `staging.env`. Reading one asks a
 * person, so a search of a directory must not show their lines.
 */
export function isSecretFile(path: string): boolean {
  const name = basename(path)
  return (/^\.env/i.test(name) || /\.env$/i.test(name)) && !template.test(name)
}
