import { afterEach, describe, expect, test } from "vitest"
import { languageOf, languageServers } from "../../src/lsp/servers.ts"
import { findRoot } from "../../src/lsp/service.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

describe("languageServers", () => {
  const named = (config: Parameters<typeof languageServers>[0], id: string) =>
    languageServers(config).find((server) => server.id === id)

  test("lists configured servers before known ones", () => {
    const own = { command: ["my-server", "--fast"], extensions: [".ts"] }
    const [first, ...rest] = languageServers({ mine: own })
    expect(first).toMatchObject({
      id: "mine",
      command: ["my-server", "--fast"],
      extensions: [".ts"],
      roots: [],
    })
    expect(rest).toEqual(languageServers(undefined))
    expect(rest.map(({ id }) => id)).toContain("gopls")
  })

  test("merges a configuration with a known server", () => {
    const before = named({}, "typescript")
    const given = { initialization: { tsserver: { path: "/ts" } }, env: { A: "1" } }
    expect(named({ typescript: given }, "typescript")).toEqual({
      ...before,
      env: { A: "1" },
      initialization: { tsserver: { useSyntaxServer: "never", path: "/ts" } },
    })
  })

  test("switches off one or all servers", () => {
    expect(named({ pyright: { disabled: true } }, "pyright")).toBeUndefined()
    expect(languageServers(false)).toEqual([])
  })

  test("rejects a new server without a command or extensions", () => {
    expect(() => languageServers({ mine: { command: ["a"] } })).toThrow(
      /lsp\.mine .*"command" and "extensions"/,
    )
    expect(() => languageServers({ mine: { extensions: [".a"] } })).toThrow(/lsp\.mine/)
  })
})

test("languageOf returns the protocol's name, else the extension", () => {
  expect(["a.tsx", "b.mts", "c.py", "d.go", "e"].map(languageOf)).toEqual([
    "typescriptreact",
    "typescript",
    "python",
    "go",
    "",
  ])
})

describe("findRoot", () => {
  let project: TemporaryProject | undefined
  afterEach(() => project?.remove())

  test("returns the nearest directory with a marker, never above the worktree", async () => {
    project = await temporaryProject({
      "go.mod": "",
      "repo/a/go.mod": "",
      "repo/a/b/main.go": "",
      "repo/main.go": "",
    })
    const worktree = project.path("repo")
    const root = (path: string) => findRoot(path, ["go.work", "go.mod"], worktree)
    expect(root(project.path("repo/a/b/main.go"))).toBe(project.path("repo/a"))
    expect(root(project.path("repo/main.go"))).toBe(worktree)
    expect(root("/elsewhere/deep/main.go")).toBe("/elsewhere/deep")
  })
})
