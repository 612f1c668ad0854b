import fc from "fast-check"
import { expect, test } from "vitest"
import { createLineReader } from "../../src/external-tool/line-reader.ts"
import { readToolLine } from "../../src/external-tool/protocol.ts"
import { runProgram } from "../../src/external-tool/run.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { makeProgram } from "./make-program.ts"

const good = JSON.stringify({ type: "metadata", id: "c", title: "é", metadata: { a: [1] } })

/** Feeds pieces of bytes to the reader and the protocol. */
function readAll(bytes: Uint8Array, cuts: readonly number[]) {
  const told: { number: number; problem?: string }[] = []
  const reader = createLineReader({
    lineBytes: 200,
    totalBytes: 2_000,
    onLine(text, number) {
      const read = readToolLine(text, "c")
      told.push(read.ok ? { number } : { number, problem: read.problem })
      return read.ok
    },
    onProblem: (problem, number) => void told.push({ number, problem }),
  })
  let start = 0
  for (const end of [...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]) {
    reader.push(bytes.subarray(start, end))
    start = Math.max(start, end)
  }
  reader.end()
  return told
}

test("reads the same lines however the output is split", () => {
  const lines = fc.array(fc.oneof(fc.constant(good), fc.string({ unit: "grapheme" }), fc.json()), {
    maxLength: 8,
  })
  fc.assert(
    fc.property(lines, fc.array(fc.nat(), { maxLength: 20 }), (written, cuts) => {
      const bytes = Buffer.from(written.join("\n"))
      expect(readAll(bytes, cuts)).toEqual(readAll(bytes, []))
    }),
  )
})

test("stops reading at the first invalid line", () => {
  const garbage = fc.uint8Array({ minLength: 1, maxLength: 300 })
  fc.assert(
    fc.property(fc.nat({ max: 4 }), garbage, fc.array(fc.nat()), (count, tail, cuts) => {
      const [first = ""] = Buffer.from(tail).toString("latin1").split("\n")
      fc.pre(first.trim() !== "")
      const bytes = Buffer.concat([Buffer.from(`${good}\n`.repeat(count)), tail])
      const told = readAll(bytes, cuts)
      expect(told.slice(0, count)).toEqual(Array.from({ length: count }, (_, i) => ({ number: i + 1 })))
      expect(told).toHaveLength(count + 1)
      expect(told.at(-1)).toMatchObject({ number: count + 1, problem: expect.any(String) })
    }),
  )
})

test("rejects a valid line that was cut", () => {
  for (let length = 1; length < Buffer.from(good).length; length++) {
    const bytes = Buffer.from(good).subarray(0, length)
    expect(readAll(bytes, [])).toEqual([{ number: 1, problem: expect.any(String) }])
  }
})

test("fails with the line number if a program writes garbage", async () => {
  const garbage = fc.uint8Array({ minLength: 1, maxLength: 2_000 })
  await fc.assert(
    fc.asyncProperty(garbage, async (bytes) => {
      fc.pre(/\S/.test(Buffer.from(bytes).toString("latin1")))
      const quoted = [...bytes].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")
      const program = makeProgram(`#!/bin/sh\nprintf '${quoted}'\n`)
      await using ctx = fakeContext({ directory: program.host.directory })
      const error = await runProgram(program, {}, ctx).catch((thrown: unknown) => thrown)
      expect(String(error)).toMatch(/output, line \d+: |returned no result/)
    }),
    { numRuns: 15 },
  )
})
