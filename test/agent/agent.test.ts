import { expect, test } from "vitest"
import { type AgentConfig, mergeAgents } from "../../src/agent/agent.ts"
import { builtinAgents } from "../../src/agent/builtin.ts"
import { judge, type Policy, withFixedCeiling } from "../../src/permission/policy.ts"
import { rulesFromObject } from "../../src/permission/rules.ts"

function merged(name: string, config: AgentConfig) {
  const agent = mergeAgents(builtinAgents(), { [name]: config }).get(name)
  if (!agent) throw new Error(`there is no agent ${name}`)
  return agent
}

/** Returns the permissions that a list of tools leaves to an agent that may do everything. */
function verdicts(tools: Record<string, boolean>, permissions: readonly string[]) {
  const policy: Policy = { layers: [{ name: "agent", rules: rulesFromObject("allow") }] }
  const limited = withFixedCeiling(policy, merged("a", { tools }).tools ?? [])
  return permissions.map((permission) => judge(limited, permission, ["x"]).action).join(" ")
}

test("removes a tool that is set to false and keeps the others", () => {
  expect(verdicts({ bash: false }, ["bash", "read", "edit"])).toBe("deny allow allow")
  expect(verdicts({ "docs_*": false }, ["docs_find", "read"])).toBe("deny allow")
})

test('keeps tools set to true, and permissions that are not tools, after "*": false', () => {
  const tools = { "*": false, read: true }
  expect(verdicts(tools, ["read", "bash", "edit", "task", "my_tool"])).toBe("allow deny deny deny deny")
  expect(verdicts(tools, ["external_directory", "doom_loop"])).toBe("allow allow")
})

test("removes all tools that share a permission with a removed one", () => {
  expect(verdicts({ write: false, edit: true }, ["edit"])).toBe("deny")
  expect(verdicts({ write: false }, ["edit"])).toBe("deny")
})

test("keeps the ceiling of a built-in agent with a list of tools", () => {
  const plan = merged("plan", { tools: { edit: true, bash: false } })
  expect(plan.ceiling).toEqual(builtinAgents().find(({ name }) => name === "plan")?.ceiling)
  expect(merged("plan", { hidden: true })).toMatchObject({ hidden: true, mode: "primary" })
})

test("keeps the rules of a project separate", () => {
  const [mine, theirs] = [rulesFromObject({ bash: "deny" }), rulesFromObject({ bash: "allow" })]
  const agents = mergeAgents(
    builtinAgents(),
    {},
    { own: { build: mine }, project: { build: theirs, own: theirs } },
  )
  expect(agents.get("build")).toMatchObject({ permission: mine, projectPermission: theirs })
  expect(agents.get("own")).toMatchObject({ permission: [], projectPermission: theirs, mode: "all" })
})
