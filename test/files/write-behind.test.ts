import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, expect, test } from "vitest"
import { openWriteBehind } from "../../src/files/write-behind.ts"
import { runs } from "../runs.ts"

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "behind-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const large = 64 * 1024
const turnOfLoop = () => new Promise((resolve) => setTimeout(resolve, 5))

/** The number of descriptors that this process has open on a path. */
function openOn(path: string): number {
  const links = readdirSync("/proc/self/fd").map((name) => {
    const entry = statSync(join("/proc/self/fd", name), { throwIfNoEntry: false })
    return entry?.ino
  })
  const { ino } = statSync(path)
  return links.filter((found) => found === ino).length
}

test("pieces of any size are there in their order whenever it is settled, and the caller may write over them", async () => {
  let number = 0
  const piece = fc.record({ bytes: fc.integer({ min: 0, max: 3 * large }), rest: fc.constantFrom(0, 1, 2) })
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
      number += 1
      const path = join(directory, String(number))
      const file = openWriteBehind(path)
      const expected: Buffer[] = []
      for (const [index, { bytes, rest }] of pieces.entries()) {
        const chunk = Buffer.alloc(bytes, `${index} some text `)
        expected.push(Buffer.from(chunk))
        file.append(chunk)
        chunk.fill(0)
        if (rest === 1) await turnOfLoop()
        if (rest !== 2) continue
        file.settle()
        expect(readFileSync(path).equals(Buffer.concat(expected))).toBe(true)
      }
      expect(file.bytes).toBe(Buffer.concat(expected).length)
      file.close()
      expect(readFileSync(path).equals(Buffer.concat(expected))).toBe(true)
    }),
    { numRuns: runs(60) },
  )
})

test.runIf(existsSync("/proc/self/fd"))(
  "closed while another thread writes, the descriptor goes too",
  async () => {
    const path = join(directory, "a")
    const file = openWriteBehind(path)
    file.append(Buffer.alloc(large, "a"))
    file.close()
    file.close()
    await expect.poll(() => openOn(path)).toBe(0)
    expect(statSync(path)).toMatchObject({ size: large })
  },
)

// `/dev/full` can be opened, and rejects every write like a full disk.
test.runIf(existsSync("/dev/full"))("reports a failed background write with the next call", async () => {
  for (const tell of ["append", "settle", "close"] as const) {
    const path = join(directory, tell)
    symlinkSync("/dev/full", path)
    const file = openWriteBehind(path)
    file.append(Buffer.alloc(large))
    await turnOfLoop()
    expect(() => (tell === "append" ? file.append(Buffer.alloc(1)) : file[tell]())).toThrow("ENOSPC")
    expect(file.bytes).toBe(0)
    if (tell !== "close") expect(() => file.close()).toThrow("ENOSPC")
  }
})

test.runIf(existsSync("/dev/full"))(
  "settling a piece that is under way tells at once that the disk is full",
  () => {
    const path = join(directory, "a")
    symlinkSync("/dev/full", path)
    const file = openWriteBehind(path)
    file.append(Buffer.alloc(large))
    expect(() => file.settle()).toThrow("ENOSPC")
    expect(() => file.close()).toThrow("ENOSPC")
  },
)
