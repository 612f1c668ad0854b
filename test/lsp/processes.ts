import { hasEnvironmentLine, readProcessTable } from "../../src/util/process-table.ts"

/**
 * Returns an environment with a unique mark, and a function that lists the running processes with it. Servers may leave
 * their directory and process group, but keep the environment. Linux only.
 */
export function markedEnvironment() {
  const mark = `LANGUAGE_SERVER_TEST=${crypto.randomUUID()}`
  const [name = "", value] = mark.split("=")
  return {
    environment: { ...process.env, [name]: value },
    running: () =>
      readProcessTable()
        .filter(({ alive, pid }) => alive && hasEnvironmentLine(pid, mark))
        .map(({ pid }) => pid),
  }
}
