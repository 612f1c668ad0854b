import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { createSecretMask } from "../../src/tool/secrets.ts"
import { createSpillOpener } from "../../src/tool/spill.ts"

const secrets = [
  { name: "LONG", value: "hunter2-and-more" },
  { name: "SHORT", value: "hunter2-" },
  { name: "TINY", value: "yes" },
]

test("replaces secrets by name, longest first, and ignores short values", () => {
  const mask = createSecretMask(secrets)
  expect(mask.text("a hunter2-and-more b hunter2-x yes")).toBe("a [secret LONG] b [secret SHORT]x yes")
  expect(mask.value({ list: ["hunter2-", 1, null], "hunter2-": true })).toEqual({
    list: ["[secret SHORT]", 1, null],
    "hunter2-": true,
  })
})

test("inserts names with replacement patterns literally", () => {
  expect(createSecretMask([{ name: "$&", value: "p$&ssword" }]).text("p$&ssword")).toBe("[secret $&]")
})

test("returns the input unchanged without secrets", () => {
  const mask = createSecretMask([{ name: "TINY", value: "yes" }])
  const [given, bytes] = [{ list: ["yes"] }, Buffer.from("yes")]
  expect(mask.empty).toBe(true)
  expect(mask.value(given)).toBe(given)
  expect(mask.stream().push(bytes)).toBe(bytes)
  expect(mask.split("yes")).toEqual({ shown: "yes", held: "" })
})

test("hides secrets that are added later, also in open streams", () => {
  const mask = createSecretMask()
  const stream = mask.stream()
  const seen = [stream.push(Buffer.from("hunter2- and "))]
  mask.add(secrets)
  mask.add([{ name: "AGAIN", value: "hunter2-" }])
  mask.add([{ name: "OTHER", value: "another-one" }])
  seen.push(stream.push(Buffer.from("hunter2-, anoth")), stream.push(Buffer.from("er-one")), stream.end())
  expect(Buffer.concat(seen).toString()).toBe("hunter2- and [secret SHORT], [secret OTHER]")
  expect(mask.empty).toBe(false)
  expect(mask.text("hunter2-and-more another-one")).toBe("[secret LONG] [secret OTHER]")
})

test("hides secrets in JSON", () => {
  const mask = createSecretMask([{ name: "KEY", value: 'a"b\\c\nd-long' }])
  expect(mask.text(JSON.stringify({ is: 'a"b\\c\nd-long' }))).toBe('{"is":"[secret KEY]"}')
})

const word = fc.constantFrom("hunter2-and-more", "hunter2-", "hunter2", "hunter", "2-and", "ü", "\n", "x")

test("masks chunks like the whole output", () => {
  const mask = createSecretMask(secrets)
  fc.assert(
    fc.property(fc.array(word, { maxLength: 30 }), fc.array(fc.nat(12), { maxLength: 40 }), (words, cuts) => {
      const text = words.join("")
      const bytes = Buffer.from(text)
      const stream = mask.stream()
      const seen: Buffer[] = []
      let from = 0
      for (const cut of cuts) {
        seen.push(Buffer.from(stream.push(bytes.subarray(from, from + cut))))
        from += cut
      }
      seen.push(Buffer.from(stream.push(bytes.subarray(from))), Buffer.from(stream.end()))
      expect(Buffer.concat(seen).toString()).toBe(mask.text(text))
    }),
  )
})

test("masks secrets in spill files", async () => {
  const directory = await mkdtemp(join(tmpdir(), "tackle-secrets-"))
  const mask = createSecretMask(secrets)
  const file = createSpillOpener({ directory, name: "x", mask })()
  // One reused buffer, as for real output.
  const buffer = Buffer.alloc(3)
  for (const piece of "begin hunter2-and-more end".match(/.{1,3}/g) ?? []) {
    file.write(buffer.subarray(0, buffer.write(piece)))
  }
  file.close()
  file.close()
  expect(await readFile(file.path, "utf8")).toBe("begin [secret LONG] end")
  await rm(directory, { recursive: true })
})

test("shows no part of a secret in streamed text", () => {
  const mask = createSecretMask(secrets)
  fc.assert(
    fc.property(fc.array(word, { maxLength: 20 }), fc.nat(6), (words, size) => {
      const text = words.join("")
      let seen = ""
      let held = ""
      for (let from = 0; from < text.length; from += size + 1) {
        const next = mask.split(held + text.slice(from, from + size + 1))
        seen += next.shown
        held = next.held
      }
      expect(seen + mask.text(held)).toBe(mask.text(text))
    }),
  )
})

test("keeps values without secrets, and keys with a special meaning", () => {
  const mask = createSecretMask([{ name: "TOKEN", value: "abcdefgh" }])
  const given = JSON.parse('{"a":{"b":1},"__proto__":{"text":"is abcdefgh"}}')
  const masked = mask.value(given)
  expect(JSON.stringify(masked)).toBe('{"a":{"b":1},"__proto__":{"text":"is [secret TOKEN]"}}')
  expect(masked.a).toBe(given.a)
  expect(JSON.stringify(given)).toContain("is abcdefgh")
})
