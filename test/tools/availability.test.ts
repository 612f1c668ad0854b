import { describe, expect, test } from "vitest"
import { readFeatures, unavailableReason } from "../../src/tools/availability.ts"

type Settings = Partial<Parameters<typeof readFeatures>[0]>

function offered(id: string, settings: Settings = {}, model = "test/m"): boolean {
  const features = readFeatures({ environment: {}, experimental: {}, search: false, ...settings })
  const [providerID = "", ...rest] = model.split("/")
  return unavailableReason(id, features, { providerID, modelID: rest.join("/") }) === undefined
}

const environment = (variables: Record<string, string>): Settings => ({ environment: variables })

describe("models trained on patches", () => {
  test.each(
    "openai/gpt-5 openai/gpt-5.1-codex-max openai/GPT-6-mini openrouter/openai/gpt-5 azure/my-gpt-5 openai/codex-mini-latest".split(
      " ",
    ),
  )("%s", (model) => {
    expect(["edit", "write", "apply_patch"].filter((id) => offered(id, {}, model))).toEqual(["apply_patch"])
  })

  test.each(
    "openai/gpt-4.1 openai/gpt-4o openai/gpt-3.5-turbo groq/gpt-oss-120b anthropic/claude-5 test/m local/chatgpt-50x".split(
      " ",
    ),
  )("are not %s", (model) => {
    expect(["edit", "write", "apply_patch"].filter((id) => offered(id, {}, model))).toEqual(["edit", "write"])
  })

  test("do not matter when the user calls a tool", () => {
    const features = readFeatures({ environment: {}, experimental: {}, search: false })
    for (const id of ["edit", "write", "apply_patch"]) expect(unavailableReason(id, features)).toBeUndefined()
    expect(unavailableReason("websearch", features)).toMatch(/EXA_API_KEY/)
  })
})

describe.each(["websearch", "codesearch"])("%s is available", (id) => {
  test.each<[string, boolean, Settings, string?]>([
    ["never by itself", false, {}],
    ["where a back end is configured", true, { search: true }],
    ["for models of opencode", true, {}, "opencode/m"],
    ["with TACKLE_ENABLE_EXA", true, environment({ TACKLE_ENABLE_EXA: "1" })],
    ["not with TACKLE_ENABLE_EXA=0", false, environment({ TACKLE_ENABLE_EXA: "0" })],
    ["not with other experiments", false, environment({ TACKLE_EXPERIMENTAL: "1" })],
  ])("%s", (_, expected, settings, model) => expect(offered(id, settings, model)).toBe(expected))
})

describe("experimental tools are available", () => {
  const tools = { lsp: "lsp_tool", batch: "batch_tool", plan_enter: "plan_mode", plan_exit: "plan_mode" }
  test.each(Object.entries(tools))("%s", (id, name) => {
    const variable = `TACKLE_EXPERIMENTAL_${name.toUpperCase()}`
    expect(offered(id)).toBe(false)
    expect(offered(id, { experimental: { [name]: true } })).toBe(true)
    expect(offered(id, environment({ [variable]: "true" }))).toBe(true)
    expect(offered(id, environment({ TACKLE_EXPERIMENTAL: "1" }))).toBe(true)
    // A variable for one feature overrides the variable for all; the environment overrides the config.
    expect(offered(id, environment({ TACKLE_EXPERIMENTAL: "1", [variable]: "false" }))).toBe(false)
    expect(offered(id, { ...environment({ [variable]: "0" }), experimental: { [name]: true } })).toBe(false)
    expect(
      offered(id, { ...environment({ TACKLE_EXPERIMENTAL: "1" }), experimental: { [name]: false } }),
    ).toBe(false)
  })
})

describe("variables of OpenCode", () => {
  test.each<[string, string, Record<string, string>, boolean]>([
    ["websearch", "enable the search", { OPENCODE_ENABLE_EXA: "1" }, true],
    ["websearch", "yield to those of Tackle", { OPENCODE_ENABLE_EXA: "1", TACKLE_ENABLE_EXA: "0" }, false],
    [
      "websearch",
      "apply if those of Tackle are empty",
      { OPENCODE_ENABLE_EXA: "1", TACKLE_ENABLE_EXA: "" },
      true,
    ],
    ["lsp", "enable a feature", { OPENCODE_EXPERIMENTAL_LSP_TOOL: "true" }, true],
    ["plan_enter", "enable a feature", { OPENCODE_EXPERIMENTAL_PLAN_MODE: "1" }, true],
    ["batch", "enable all features", { OPENCODE_EXPERIMENTAL: "1" }, true],
    [
      "batch",
      "disable a feature",
      { TACKLE_EXPERIMENTAL: "1", OPENCODE_EXPERIMENTAL_BATCH_TOOL: "0" },
      false,
    ],
    ["question", "name the client", { OPENCODE_CLIENT: "acp" }, false],
  ])("%s: %s", (id, _, variables, expected) => {
    expect(offered(id, environment(variables))).toBe(expected)
  })
})

test("question requires a client that shows questions; plan mode requires the command line", () => {
  const client = (name: string): Settings => ({
    ...environment({ TACKLE_CLIENT: name }),
    experimental: { plan_mode: true },
  })
  expect(["cli", "app", "desktop", "acp"].map((name) => offered("question", client(name)))).toEqual([
    true,
    true,
    true,
    false,
  ])
  expect(["cli", "app"].map((name) => offered("plan_enter", client(name)))).toEqual([true, false])
  const features = readFeatures({ environment: { TACKLE_CLIENT: "acp" }, experimental: {}, search: false })
  expect(unavailableReason("question", features)).toMatch(/TACKLE_CLIENT is app, cli or desktop$/)
  expect(offered("question")).toBe(true)
})
