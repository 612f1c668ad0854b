import { expect, test } from "vitest"
import { writtenSecrets } from "../../src/engine/secrets.ts"

const values = (part: unknown) => writtenSecrets("mcp.tickets", part).map(({ value }) => value)

test.each<[string, unknown, string[]]>([
  ["a header", { headers: { "X-Api-Key": "abc-1" } }, ["abc-1"]],
  ["a header without its scheme", { headers: { Authorization: "Bearer abc-2" } }, ["abc-2"]],
  ["a scheme behind a name that says nothing", { headers: { "X-Upstream": "Basic abc-3" } }, ["abc-3"]],
  [
    "variables",
    { environment: { GITHUB_PAT: "abc-4", PGPASSWORD: "abc-5", NPM_AUTH: "abc-6" } },
    ["abc-4", "abc-5", "abc-6"],
  ],
  ["the secret of a client", { oauth: { clientId: "me", clientSecret: "abc-7" } }, ["abc-7"]],
  ["an argument in one", { command: ["serve", "--api-key=abc-8"] }, ["abc-8"]],
  ["an argument in two", { command: ["serve", "--token", "abc-9", "--port", "80"] }, ["abc-9"]],
  ["a header as an argument", { command: ["-H", "Authorization: Bearer abc-10"] }, ["abc-10"]],
  ["the password of an address", { environment: { DATABASE: "postgres://me:a%20b@db/x" } }, ["a%20b", "a b"]],
  [
    "a parameter of an address",
    { url: "https://tickets.test/mcp?api_key=abc-11&page=2" },
    ["abc-11", "abc-11"],
  ],
  ["whatever lies deep", { initialization: { a: [{ licenceKey: "abc-12" }] } }, ["abc-12"]],
])("%s is secret", (_, part, secrets) => {
  expect(values(part)).toEqual(secrets)
})

test.each<[string, unknown]>([
  ["headers that say what is wanted", { headers: { Accept: "application/json", "X-Title": "My tickets" } }],
  [
    "variables of other kinds",
    { environment: { NODE_ENV: "production", LANG: "en_US.UTF-8", AUTHOR: "Ann" } },
  ],
  [
    "a program and its arguments",
    { command: ["npx", "-y", "@tickets/server", "--format=json", "--key-file"] },
  ],
  [
    "places of credentials",
    {
      environment: { SSH_KEY_PATH: "/home/me/key", TOKEN_URL: "https://sign.test/in" },
      command: ["--token-file", "/home/me/token"],
    },
  ],
  ["an address", { url: "https://tickets.test/mcp?page=2" }],
  ["numbers and switches", { timeout: 30_000, enabled: true, maxTokens: 4096 }],
])("%s are not", (_, part) => {
  expect(values(part)).toEqual([])
})

test("names a secret by its location", () => {
  expect(writtenSecrets("mcp", { tickets: { headers: { Authorization: "Bearer abc" } } })).toEqual([
    { name: "mcp.tickets.headers.Authorization", value: "abc" },
  ])
})
