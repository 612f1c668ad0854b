import { createHash } from "node:crypto"
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { privateCopy } from "../../src/external-tool/private-copy.ts"
import { realPath } from "../../src/util/paths.ts"
import { temporaryDirectory } from "./make-program.ts"

test("copies only the pinned files beside and below the program", () => {
  const { tool, copies, pinned } = makeTool()
  const elsewhere = join(temporaryDirectory(), "other")
  writeFileSync(elsewhere, "other")
  const copy = privateCopy(tool, new Map([...pinned, [realPath(elsewhere), sha256("other")]]), copies)
  const files = readdirSync(dirname(copy), { recursive: true }).map(String).sort()
  expect(files).toEqual(["tool", "util", "util/help.sh"])
  expect(statSync(copy).mode & 0o777).toBe(0o500)
  expect(statSync(join(dirname(copy), "util/help.sh")).mode & 0o777).toBe(0o400)
})

test.each([
  [
    "changed",
    (copy: string) => {
      chmodSync(copy, 0o700)
      writeFileSync(copy, "#!/bin/sh\necho bad\n")
    },
  ],
  ["extended by another file", (copy: string) => writeFileSync(join(dirname(copy), "json.py"), "bad")],
])("replaces a copy that was %s", (_, spoil) => {
  const { tool, copies, pinned } = makeTool()
  const copy = privateCopy(tool, pinned, copies)
  spoil(copy)
  expect(privateCopy(tool, pinned, copies)).toBe(copy)
  expect(readFileSync(copy, "utf8")).toBe("#!/bin/sh\n")
  expect(readdirSync(dirname(copy)).sort()).toEqual(["tool", "util"])
  expect(readdirSync(copies)).toHaveLength(1)
})

test("uses an intact copy even if the original changed", () => {
  const { tool, copies, pinned } = makeTool()
  const copy = privateCopy(tool, pinned, copies)
  writeFileSync(tool, "#!/bin/sh\necho bad\n")
  expect(readFileSync(privateCopy(tool, pinned, copies), "utf8")).toBe("#!/bin/sh\n")
  expect(copy).not.toBe(tool)
})

test("rejects a changed helper file and leaves nothing behind", () => {
  const { tool, copies, pinned } = makeTool()
  writeFileSync(join(dirname(tool), "util/help.sh"), "bad")
  expect(() => privateCopy(tool, pinned, copies)).toThrow("help.sh has changed since it was trusted")
  expect(readdirSync(copies)).toEqual([])
})

function makeTool() {
  const directory = temporaryDirectory()
  const tool = join(directory, "tool")
  const helper = join(directory, "util/help.sh")
  mkdirSync(dirname(helper))
  writeFileSync(tool, "#!/bin/sh\n")
  chmodSync(tool, 0o755)
  writeFileSync(helper, "help")
  const pinned = new Map([
    [realPath(tool), sha256("#!/bin/sh\n")],
    [realPath(helper), sha256("help")],
  ])
  return { tool, copies: join(temporaryDirectory(), "copies"), pinned }
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}
