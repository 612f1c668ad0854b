import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { projectTrustItems } from "../../src/config/project-trust-items.ts"
import type { TrustItem } from "../../src/permission/trust.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

const location = () => ({
  directory: place.project,
  worktree: place.project,
  home: place.home,
  environment: {},
  dataDirectory: join(place.home, "data"),
})

async function item(): Promise<TrustItem> {
  const [only] = await projectTrustItems(location())
  if (!only) throw new Error("there is no item")
  return only
}

/** Returns the shell of the config when only `trusted` is trusted. */
async function shell(trusted: TrustItem) {
  const check = (items: readonly TrustItem[]) => ({
    changed: items.filter(({ path, hash }) => hash === "" || hash !== trusted.hash || path !== trusted.path),
  })
  const { config, projectTrusted } = await place.load({ trusted: check })
  return projectTrusted ? config.shell : "not trusted"
}

test.each([
  ["tackle.json", '{"shell":"/bin/{file:name}"}'],
  ["tackle.json", '{"shell":"/bin/\\u007bfi\\u006ce:name}"}'],
  ["tackle.toml", 'shell = "/bin/\\u007bfile:name}"'],
  [".tackle/config.json", '{"shell":"/bin/{file:../name}"}'],
])("revokes %s when the text of a substituted file changes: %s", async (file, text) => {
  place.write(`project/${file}`, text)
  place.write("project/name", "sh\n")
  const trusted = await item()
  expect(await shell(trusted)).toBe("/bin/sh")
  place.write("project/name", "../../tmp/evil")
  expect(await shell(trusted)).toBe("not trusted")
  expect((await item()).hash).not.toBe(trusted.hash)
  place.write("project/name", "sh\n")
  expect(await shell(trusted)).toBe("/bin/sh")
})

test("treats a file that appears, disappears or becomes unreadable as a change", async () => {
  place.write("project/tackle.json", '{"shell":"{file:~/name}"}')
  const missing = await item()
  await expect(shell(missing)).rejects.toThrow(/the file .* does not exist/)
  place.write("home/name", "sh")
  const there = await item()
  place.write("home/name", "x".repeat(1024 * 1024 + 1))
  const large = await item()
  await expect(shell(large)).rejects.toThrow(/larger than 1 MB/)
  expect(new Set([missing, there, large].map(({ hash }) => hash)).size).toBe(3)
})

test("hashes the bytes of a config without substituted files", async () => {
  place.write("project/tackle.json", "{}")
  expect((await item()).hash).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
})

test("never trusts a config with too many substituted files, and does not hang on devices", async () => {
  const names = Array.from({ length: 65 }, (_, index) => `{file:${index}}`).join("")
  place.write("project/tackle.json", { shell: names })
  expect((await item()).hash).toBe("")
  symlinkSync("/dev/zero", join(place.project, "zero"))
  place.write("project/tackle.json", { shell: "{file:zero}" })
  await expect(shell(await item())).rejects.toThrow(/not a regular file/)
})
