import { chmod, readFile, stat } from "node:fs/promises"
import { delimiter } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, test } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import { createMachine, until } from "../cli/run-tackle.ts"
import { closeBrowserAfterwards, hasNoBrowser, openWindow } from "./open-page.ts"

closeBrowserAfterwards()

test.skipIf(hasNoBrowser || process.platform !== "linux")(
  "opens the page with a link that other users of the machine cannot see",
  async () => {
    const machine = await createMachine()
    const bin = await temporaryProject({ "xdg-open": `#!/bin/sh\nprintf '%s\\n' "$@" > "$OPENED"\n` })
    const opened = `${bin.directory}/opened`
    await chmod(`${bin.directory}/xdg-open`, 0o755)
    const running = machine.start(["web", "--port", "0"], {
      env: { PATH: `${bin.directory}${delimiter}${machine.env.PATH}`, OPENED: opened },
    })
    const argument = async () => (await readFile(opened, "utf8").catch(() => "")).trim()
    await expect.poll(argument).toContain(machine.data)
    const path = await argument()
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(path).not.toContain("ticket")
    await until("the server prints a hint", () => running.stdout.includes("If no browser opens"))
    expect(running.stdout).not.toContain("ticket")
    const { page } = await openWindow()
    await page.goto(pathToFileURL(path).href)
    await page.getByText("What should the agent do?").waitFor()
    running.child.kill("SIGTERM")
    await running.ended
    await bin.remove()
  },
)
