import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { findToolFiles, watchedToolPaths } from "../../src/registry/files.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { requestWatchdog } from "../../src/util/main-thread.ts"

/** Lists the tools of a project with these files. Returns the number of watchdogs that were started for them. */
async function watchdogsFor(files: Record<string, string>): Promise<number> {
  const project = await temporaryProject(files)
  let started = 0
  const endRequest = requestWatchdog(() => {
    started += 1
    return { ready: Promise.resolve(), limitStarted() {}, limitEnded() {} }
  })
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
    await tackle.close()
    await project.remove()
  })
  await tackle.tools()
  return started
}

test("starts no watchdog if no third-party code runs in this process", async () => {
  expect(await watchdogsFor({})).toBe(0)
  expect(await watchdogsFor({ ".tackle/tool/a.sh": "#!/bin/sh\nexit 1\n" })).toBe(0)
})

test("starts a watchdog before the code of a tool file runs", async () => {
  expect(await watchdogsFor({ ".tackle/tool/a.mjs": "export default {}\n" })).toBe(1)
})
