import { expect, it } from "vitest"
import { buildTools } from "../../../src/permission/shell/programs/build-tools.ts"
import { builtins } from "../../../src/permission/shell/programs/builtins.ts"
import { filePrograms } from "../../../src/permission/shell/programs/files.ts"
import { formatters } from "../../../src/permission/shell/programs/formatters.ts"
import { gitPrograms } from "../../../src/permission/shell/programs/git.ts"
import { interpreters } from "../../../src/permission/shell/programs/interpreters.ts"
import { networkPrograms } from "../../../src/permission/shell/programs/network.ts"
import { systemPrograms } from "../../../src/permission/shell/programs/system.ts"
import { textPrograms } from "../../../src/permission/shell/programs/text.ts"
import { wrappers } from "../../../src/permission/shell/programs/wrappers.ts"

it("has one entry for each program, because a second one would replace the first", () => {
  const names = [
    ...filePrograms,
    ...textPrograms,
    ...gitPrograms,
    ...networkPrograms,
    ...interpreters,
    ...buildTools,
    ...formatters,
    ...systemPrograms,
    ...wrappers,
    ...builtins,
  ].flatMap(([words]) => words.split(" "))
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})
