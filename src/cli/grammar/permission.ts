import type { Command } from "commander"
import type { CheckFlags } from "../commands/permission.ts"
import type { FormatFlags, PlaceFlags } from "../place.ts"
import { collect, directory, format, place, placeAsItIs } from "./flags.ts"

/** The command line of `tackle permission …`. */
export function definePermission(program: Command): void {
  const permission = program.command("permission").description("explain, test and revoke permissions")
  place(permission.command("check"))
    .description("what the rules say, and why; exit code 0 allow, 10 ask, 11 deny")
    .argument("<permission>", "what is asked for, such as bash, edit or a tool's id")
    .argument("<pattern...>", "the command, path or arguments")
    .option("--agent <name>", "with the rules of this agent")
    .option("--allow <rule>", "allow a permission[:pattern]", collect)
    .option("--deny <rule>", "deny a permission[:pattern]", collect)
    .addOption(format())
    .option("--json", "the same as --format json")
    .action(async (name: string, patterns: string[], flags: CheckFlags) =>
      (await import("../commands/index.ts")).permission.checkPermission(name, patterns, flags),
    )
  directory(permission.command("test"))
    .description("hold rules against the verdicts that files expect of them")
    .argument("<file...>", "one JSON object a line: rules, permission, pattern, expect")
    .action(async (files: string[], flags: PlaceFlags) =>
      (await import("../commands/index.ts")).permission.testPermissions(files, flags),
    )
  placeAsItIs(permission.command("list"))
    .description('what was granted with "always" in this project')
    .addOption(format())
    .action(async (flags: FormatFlags) => (await import("../commands/index.ts")).permission.listGrants(flags))
  placeAsItIs(permission.command("revoke"))
    .description("take grants back")
    .argument("[id...]", "as `permission list` shows them")
    .option("--all", "every grant of this project")
    .action(async (ids: string[], flags: PlaceFlags & { all?: boolean }) =>
      (await import("../commands/index.ts")).permission.revokeGrants(ids, flags),
    )
}
