import { describe, expect, test } from "vitest"
import { namesProtected, protectionOf } from "../../src/permission/protected-files.ts"

describe("protectionOf", () => {
  test.each([
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.git",
    ".gitmodules",
    "tackle.json",
    "tackle.jsonc",
    "tackle.toml",
    ".tackle/tool/x.ts",
    ".config/tackle/tool/x.ts",
    "/home/me/.config/opencode/tools/x.ts",
    "opencode.json",
    ".opencode/config.toml",
    ".claude/settings.json",
    "AGENTS.md",
    "docs/CLAUDE.md",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".husky/pre-push",
    ".envrc",
    ".mcp.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    "pip.conf",
    ".bashrc",
    ".env",
    ".env.local",
    "config/prod.env",
    "conftest.py",
    "build.rs",
    "node_modules/.bin/x",
    ".venv/bin/python",
    ".cargo/config.toml",
    ".githooks/pre-commit",
    ".lefthook.yml",
    "lefthook-local.yml",
    "pnpm-workspace.yaml",
    "rust-toolchain.toml",
    "rust-toolchain",
    ".mvn/extensions.xml",
    ".mvn/wrapper/maven-wrapper.properties",
    "gradle/wrapper/gradle-wrapper.properties",
    ".Rprofile",
    "sub/.pryrc",
    ".pdbrc",
    ".helix/languages.toml",
    ".nvim.lua",
    ".github/agents/reviewer.md",
    ".kilocode/mcp.json",
    ".simple-git-hooks.cjs",
  ])("protects %s against changes", (path) => {
    expect(protectionOf(path, "edit")?.reason).toBeTypeOf("string")
  })

  test.each([
    ".GIT/config",
    ".Git/hooks/x",
    ".MCP.json",
    ".mcp.json.",
    ".mcp.json ",
    ".mcp.json::$DATA",
    "agents.MD",
    ".g\u200cit/config",
    ".\uff47it/config",
    ".ENV",
  ])("recognises the spelling %j", (path) => {
    expect(protectionOf(path, "edit")?.reason).toBeTypeOf("string")
  })

  test.each([
    "src/a.ts",
    ".github/workflows/ci.yml",
    ".gitignore",
    "README.md",
    "environment.ts",
    ".env.example",
    "package.json",
    "git/config",
    "src/agents.ts",
    "src/rust-toolchain.ts",
    ".github/dependabot.yml",
    "gradle/libs.versions.toml",
    "lefthook/a.ts",
    "agents/x.md",
  ])("does not protect %s against changes", (path) => {
    expect(protectionOf(path, "edit")?.reason).toBeUndefined()
  })

  test.each([".env", ".env.local", "a/.ENV", "prod.env", ".envrc"])("protects %s against reading", (path) => {
    expect(protectionOf(path, "read")?.reason).toBeTypeOf("string")
  })

  test.each([".git/config", "AGENTS.md", ".npmrc", ".env.example"])(
    "does not protect %s against reading",
    (path) => {
      expect(protectionOf(path, "read")?.reason).toBeUndefined()
    },
  )

  test.each([
    [".git/x", ".git/**", true],
    [".git/x", "*/.git/hooks/*", true],
    [".git/x", "**", false],
    [".git/x", ".g*", false],
    [".git/x", ".github/**", false],
    [".env.local", "*.env.*", true],
    [".env", "*", false],
    ["AGENTS.md", "agents.md", true],
    [".github/agents/a.md", ".github/agents/*", true],
    [".github/agents/a.md", ".github/**", false],
    [".lefthook.yml", ".lefthook.yml", true],
    ["pnpm-workspace.yaml", "*.yaml", false],
  ])("%s is named by the pattern %s: %s", (path, pattern, expected) => {
    const protection = protectionOf(path, "edit")
    expect(protection && namesProtected(pattern, protection)).toBe(expected)
  })
})
