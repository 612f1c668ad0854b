import type { Action, Rule } from "../schema/permission.ts"

const source = { file: "defaults" }

/**
 * What holds before anyone configured anything. What is not named asks. Commands that are proved to only read are
 * allowed on top of this: see `shell/read-only.ts`.
 */
export function defaultRules(): Rule[] {
  return [
    rule("*", "*", "ask"),
    ...["read", "glob", "grep", "list", "todo", "skill", "task", "lsp", "tool_search"].map((name) =>
      rule(name, "*", "allow"),
    ),
    // A language server is a program, and may run code of the project.
    rule("lsp", "start *", "ask"),
    rule("read", "*.env", "ask"),
    rule("read", "*.env.*", "ask"),
    rule("read", "*.env.example", "allow"),
    rule("external_directory", "*", "ask"),
    rule("doom_loop", "*", "ask"),
    // Hosts that are not of the public internet: what they show is meant for this machine or network alone.
    rule("private_network", "*", "deny"),
  ]
}

function rule(permission: string, pattern: string, action: Action): Rule {
  return { permission, pattern, action, source }
}
