import { chmodSync, existsSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { findToolFiles, watchedToolPaths } from "../../src/registry/files.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { requestWatchdog } from "../../src/util/main-thread.ts"

/** Lists the tools of a project with these files. Returns what happened, in order. */
async function watch(files: Record<string, string>): Promise<string[]> {
  const project = await temporaryProject(files)
  for (const name of Object.keys(files)) chmodSync(project.path(name), 0o755)
  const events: string[] = []
  const endRequest = requestWatchdog(() => {
    events.push("watchdog started")
    const ready = setTimeout(50).then(() => void events.push("watchdog ready"))
    return { ready, limitStarted() {}, limitEnded() {} }
  })
  Object.assign(globalThis, { onToolFile: () => events.push("tool file loaded") })
  const folders = [join(project.directory, ".tackle")]
  const tackle = await createTackle({
    directory: project.directory,
    store: createMemoryStore(),
    toolFiles: {
      watched: () => watchedToolPaths(folders),
      find: async () => ({ files: findToolFiles(folders).map((path) => ({ path })), problems: [] }),
    },
  })
  onTestFinished(async () => {
    endRequest()
    Reflect.deleteProperty(globalThis, "onToolFile")
    await tackle.close()
    await project.remove()
  })
  await tackle.tools()
  if (existsSync(project.path("ran"))) events.push("program ran")
  return events
}

test("starts no watchdog if no third-party code runs in this process", async () => {
  expect(await watch({})).toEqual([])
  expect(await watch({ ".tackle/tool/a.sh": "#!/bin/sh\ntouch ran\n" })).toEqual(["program ran"])
})

test("starts a watchdog before the code of a tool file runs", async () => {
  const events = await watch({ ".tackle/tool/a.mjs": "globalThis.onToolFile()\nexport default {}\n" })
  expect(events).toEqual(["watchdog started", "watchdog ready", "tool file loaded"])
})
