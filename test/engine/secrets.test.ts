import { expect, test } from "vitest"
import { databaseSecrets } from "../../src/engine/secrets.ts"
import { createSecretMask } from "../../src/tool/secrets.ts"

test.each([
  ["postgres://me:long-password@host/db", ["long-password"]],
  ["postgres://me:pass%40w%2Ford@host/db", ["pass%40w%2Ford", "pass@w/ord"]],
  ["postgres://me:50%-of-all-words@host/db", ["50%-of-all-words"]],
  ["postgres://me:with@sign-in-it@host/db", ["with@sign-in-it"]],
  ["postgres:///db?host=/run&user=me&password=in-the-query", ["in-the-query"]],
])("hides the password of %s, with and without escapes", (url, passwords) => {
  const mask = createSecretMask(databaseSecrets(url))
  for (const password of passwords)
    expect(mask.text(`a ${password} b`)).toBe("a [secret database-password] b")
})

test("finds no password in a URL without one", () => {
  for (const url of ["postgres://me@host:5432/db", "postgres:///db?host=/run", "postgres://host/db"])
    expect(databaseSecrets(url)).toEqual([])
})
