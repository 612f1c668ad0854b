import { DatabaseSync } from "node:sqlite"
import { expect, test } from "vitest"
import { createTables, migrate } from "../../src/store/migrations.ts"

test("creates the same tables and version in memory as the migrations, also in later calls", () => {
  const states = [migrate, createTables, createTables].map((create) => {
    using database = new DatabaseSync(":memory:")
    create(database)
    return [
      "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name",
      "PRAGMA user_version",
      "PRAGMA application_id",
    ].map((query) => database.prepare(query).all())
  })
  expect(states[0]?.[0]).not.toHaveLength(0)
  expect(states[1]).toEqual(states[0])
  expect(states[2]).toEqual(states[0])
})
