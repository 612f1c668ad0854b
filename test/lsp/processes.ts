import { hasEnvironmentLine, readProcessTable } from "../../src/util/process-table.ts"

/**
 * An environment by which all processes that get it are found again, and the numbers of those that run. Servers leave
 * the directory and the group that they were started in, but not this. Linux only.
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
