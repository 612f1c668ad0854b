import { existsSync } from "node:fs"
import { resolve } from "node:path"
import type { Command } from "commander"
import { dataPaths } from "../../engine/data-directory.ts"
import type { CopiedSession } from "../../session/copy-sessions.ts"
import { UsageError } from "../../util/errors.ts"
import { newId } from "../../util/id.ts"
import { identifyProcess } from "../../util/process-table.ts"
import { counted } from "../../util/words.ts"
import { visible } from "../../view/visible.ts"
import { exitCode } from "../process/exit.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { openWorkspaceWithProblems, type WorkspaceFlags } from "../workspace/workspace.ts"
import { databaseFlag, formatFlag, jsonFlag, locationFlags } from "./flags.ts"

/** Defines `tackle db` and its subcommands. */
export function defineDb(db: Command): void {
  locationFlags(db.command("migrate"))
    .description("create or update Tackle's tables in PostgreSQL")
    .addOption(databaseFlag())
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(migrateDatabase)
  locationFlags(db.command("import"))
    .description("copy the sessions in a data directory to PostgreSQL")
    .option("--from <dir>", "data directory to copy from (default: the current data directory)")
    .addOption(databaseFlag())
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(importSessions)
}

/** Flags for every `tackle db` command. */
interface DatabaseFlags extends Omit<WorkspaceFlags, "trust"> {
  database?: string
  format: "text" | "json"
}

async function migrateDatabase(flags: DatabaseFlags): Promise<void> {
  const { migratePostgres } = await import("../../store/postgres.ts")
  const versions = await migratePostgres(urlOf(flags))
  if (flags.format === "json") return printJson(versions)
  const { before, after } = versions
  if (before === after) printLine(`The tables are already at version ${after}.`)
  else
    printLine(
      before === 0
        ? `Created the tables at version ${after}.`
        : `Updated the tables from version ${before} to ${after}.`,
    )
}

async function importSessions(flags: DatabaseFlags & { from?: string }): Promise<void> {
  const url = urlOf(flags)
  const workspace = await openWorkspaceWithProblems(flags)
  const { database } = dataPaths(flags.from === undefined ? workspace.dataDirectory : resolve(flags.from))
  if (!existsSync(database))
    throw new UsageError(`${database} does not exist. Pass the data directory with --from.`)
  const { openSqliteStore } = await import("../../store/sqlite.ts")
  const { openPostgresStore } = await import("../../store/postgres.ts")
  const { copySessions } = await import("../../session/copy-sessions.ts")
  const from = await openSqliteStore(database)
  try {
    const to = await openPostgresStore(url)
    try {
      const results: CopiedSession[] = []
      for await (const result of copySessions({ from, to }, { id: newId("eng"), ...identifyProcess() })) {
        results.push(result)
        const { session, outcome, problem } = result
        if (flags.format === "json") printJson({ sessionID: session.id, outcome, problem })
        else if (outcome !== "copied" && outcome !== "unchanged")
          printLine(visible(`${session.id}: ${problem ?? explanations[outcome]}`))
      }
      const count = (outcome: CopiedSession["outcome"]) =>
        results.filter((each) => each.outcome === outcome).length
      if (flags.format === "text")
        printLine(
          `${counted(count("copied"), "session")} copied, ${count("unchanged")} already in the database.`,
        )
      if (count("held") + count("failed") > 0) process.exitCode = exitCode.failed
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

const explanations = {
  newer: "not copied, because the database contains a newer version of the session",
  held: "not copied, because a running engine is using it. Run the import again later",
  failed: "not copied",
}

/** Returns the database URL from the flag or the environment. Throws `UsageError` if neither contains a URL. */
function urlOf({ database = process.env.TACKLE_DATABASE }: Pick<DatabaseFlags, "database">): string {
  if (database) return database
  throw new UsageError(
    "Set --database or TACKLE_DATABASE to the URL of the database, such as postgres://user@host/tackle.",
  )
}
