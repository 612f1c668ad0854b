import { existsSync } from "node:fs"

/**
 * What runs a command: bash where it is, else the system's `sh`. With `-c` alone neither reads a profile; `BASH_ENV`,
 * which would name one all the same, is taken out of the environment.
 */
export function shellCommand(
  command: string,
  options: { shell?: string | undefined; environment: Readonly<Record<string, string | undefined>> },
): { argv: [string, ...string[]]; env: Record<string, string | undefined> } {
  const shell = options.shell ?? (existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh")
  return { argv: [shell, "-c", command], env: { ...options.environment, BASH_ENV: undefined } }
}
