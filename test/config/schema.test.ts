import { expect, test } from "vitest"
import { configJsonSchema } from "../../src/config/schema.ts"
import { isRecord } from "../../src/util/json.ts"

test("names and describes every key in the JSON Schema for editors", () => {
  const schema = configJsonSchema()
  const properties = isRecord(schema.properties) ? schema.properties : {}
  expect(Object.keys(properties)).toEqual([
    "$schema",
    "model",
    "small_model",
    "default_agent",
    "provider",
    "permission",
    "agent",
    "command",
    "tools",
    "tool_search",
    "override",
    "plugin",
    "instructions",
    "truncate",
    "retention",
    "tenants",
    "subagent",
    "experimental",
    "status_line",
    "secrets",
    "pass_environment",
    "shell",
    "sandbox",
    "search",
    "lsp",
    "formatter",
    "mcp",
    "retry",
    "timeout",
  ])
  const silent = Object.entries(properties).filter(([, value]) => !isRecord(value) || !value.description)
  expect(silent).toEqual([])
  expect(schema.additionalProperties).toBe(false)
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema)
})
