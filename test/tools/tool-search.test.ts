import fc from "fast-check"
import { expect, test } from "vitest"
import { rankTools } from "../../src/tools/tool-search.ts"

const entry = (id: string, description = "", parameters: string[] = []) => ({ id, description, parameters })
const catalogue = [
  entry("github_list_issues", "Lists what is open in a repository.", ["state"]),
  entry("github_createIssue", "Opens one."),
  entry("notes_add", "Adds a note to an issue.", ["text"]),
  entry("weather", "Tells how the weather is.", ["city"]),
]
const idsFor = (query: string) => rankTools(query, catalogue).map(({ id }) => id)

test.each([
  ["issue", ["github_createIssue", "github_list_issues", "notes_add"]],
  ["issues", ["github_list_issues", "github_createIssue", "notes_add"]],
  ["create an ISSUE", ["github_createIssue", "github_list_issues", "notes_add"]],
  ["add note issue", ["notes_add", "github_createIssue", "github_list_issues"]],
  ["forecast for a city", ["weather"]],
  ["notes_add", ["notes_add"]],
  ["github_createissue, weather", ["github_createIssue", "weather"]],
  ["nothing like it", []],
])("%j finds %j first", (query, expected) => {
  expect(idsFor(query).slice(0, expected.length)).toEqual(expected)
})

test("ranks a tool first for its own name", () => {
  const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_-]{0,20}$/)
  fc.assert(
    fc.property(fc.uniqueArray(name, { minLength: 1, selector: (id) => id.toLowerCase() }), (ids) => {
      const tools = ids.map((id) => entry(id, "Does something with it."))
      for (const id of ids) expect(rankTools(id, tools)[0]?.id).toBe(id)
    }),
  )
})
