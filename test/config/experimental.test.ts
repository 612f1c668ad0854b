import { expect, test } from "vitest"
import { experimentalSwitches } from "../../src/config/experimental.ts"

test.each([
  [undefined, {}, false],
  [{ batch_tool: true }, {}, true],
  [undefined, { TACKLE_EXPERIMENTAL: "1" }, true],
  [undefined, { TACKLE_EXPERIMENTAL_BATCH_TOOL: "true" }, true],
  [{ batch_tool: true }, { TACKLE_EXPERIMENTAL: "0" }, false],
  [undefined, { TACKLE_EXPERIMENTAL: "1", TACKLE_EXPERIMENTAL_BATCH_TOOL: "0" }, false],
  [{ batch_tool: true }, { TACKLE_EXPERIMENTAL: "" }, true],
])("config %o with %o: %s", (config, environment, batchTool) => {
  expect(experimentalSwitches(config, environment)).toEqual({ batchTool })
})
