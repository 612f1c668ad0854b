import { expect, it } from "vitest"
import { allPrograms } from "../../../src/permission/shell/program-table.ts"

it("has one entry for each program, because a second one would replace the first", () => {
  const names = allPrograms.flatMap(([words]) => words.split(" "))
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})
