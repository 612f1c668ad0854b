import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { ConfigError } from "../../src/config/errors.ts"
import { type LoadConfigOptions, type LoadedConfig, loadConfig } from "../../src/config/load.ts"

/** A home and a project in a temporary directory. */
export interface TestProject {
  home: string
  project: string
  /** Writes a file below the root: text as it is, other values as JSON. Returns its absolute path. */
  write(path: string, content: unknown): string
  load(options?: Partial<LoadConfigOptions>): Promise<LoadedConfig>
  /** Returns the text of the `ConfigError` that loading ends with. Throws any other error. */
  failure(options?: Partial<LoadConfigOptions>): Promise<string>
  remove(): void
}

export function createTestProject(): TestProject {
  const root = mkdtempSync(join(tmpdir(), "tackle-config-"))
  const [home, project] = [join(root, "home"), join(root, "project")]
  mkdirSync(join(project, ".git"), { recursive: true })
  mkdirSync(home)
  const load: TestProject["load"] = (options) =>
    loadConfig({ directory: project, worktree: project, home, environment: {}, trusted: true, ...options })
  return {
    home,
    project,
    write(path, content) {
      const file = join(root, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content))
      return file
    },
    load,
    async failure(options) {
      const error = await load(options).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (!(error instanceof ConfigError)) throw new Error("expected a ConfigError", { cause: error })
      return error.message
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}
