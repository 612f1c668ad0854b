import type { Command } from "commander"
import type {
  SessionExportFlags,
  SessionForkFlags,
  SessionImportFlags,
  SessionListFlags,
} from "../commands/session.ts"
import type { SessionPruneFlags } from "../commands/session-prune.ts"
import type { SessionUndoFlags } from "../commands/session-undo.ts"
import type { FormatFlags, PlaceFlags } from "../place.ts"
import { duration, format, place, placeAsItIs, positive } from "./flags.ts"

/** The command line of `tackle session …`. */
export function defineSession(program: Command): void {
  const session = program.command("session").description("show and manage sessions")
  placeAsItIs(session.command("list"))
    .description("the sessions of this project, newest first")
    .option("--all", "of every project")
    .addOption(format())
    .action(async (flags: SessionListFlags) =>
      (await import("../commands/index.ts")).session.listSessions(flags),
    )
  placeAsItIs(session.command("show"))
    .description("what was said and done in a session")
    .argument("[id]", "the session (default: the last of this project)")
    .addOption(format())
    .action(async (id: string | undefined, flags: FormatFlags) =>
      (await import("../commands/index.ts")).session.showSession(id, flags),
    )
  placeAsItIs(session.command("export"))
    .description("a whole session as JSON, on stdout")
    .argument("[id]", "the session (default: the last of this project)")
    .option("--sanitize", "without what was said, read, written or run, and without paths")
    .action(async (id: string | undefined, flags: SessionExportFlags) =>
      (await import("../commands/index.ts")).session.exportSession(id, flags),
    )
  place(session.command("import"))
    .description("take an exported session into this project")
    .argument("<file>", 'the file; "-" reads stdin')
    .option("--copy", "with new ids, beside one that is there")
    .action(async (file: string, flags: SessionImportFlags) =>
      (await import("../commands/index.ts")).session.importSession(file, flags),
    )
  placeAsItIs(session.command("fork"))
    .description("a new session with the history of another")
    .argument("[id]", "the session (default: the last of this project)")
    .option("--at <message>", "only up to the end of this message's turn")
    .action(async (id: string | undefined, flags: SessionForkFlags) =>
      (await import("../commands/index.ts")).session.forkSession(id, flags),
    )
  place(session.command("compact"))
    .description("replace what is old by a summary, for the model")
    .argument("[id]", "the session (default: the last of this project)")
    .addOption(format())
    .action(async (id: string | undefined, flags: FormatFlags) =>
      (await import("../commands/index.ts")).sessionCompact.compactSession(id, flags),
    )
  for (const way of ["undo", "redo"] as const) {
    placeAsItIs(session.command(way))
      .description(
        way === "undo" ? "put back the files that the last turn changed" : "take the last undo back",
      )
      .argument("[id]", "the session (default: the last of this project)")
      .option("--others", "leave files alone that were changed since")
      .option("--skip", "leave all files of the turn alone, and go on beyond it the next time")
      .addOption(format())
      .action(async (id: string | undefined, flags: SessionUndoFlags) =>
        (await import("../commands/index.ts")).sessionUndo.undoSession(way, id, flags),
      )
  }
  placeAsItIs(session.command("prune"))
    .description("remove old sessions with everything in them")
    .option("--older-than <time>", "those last used so long ago: 30d, 12h, 6w", duration)
    .option("--keep <number>", "all but so many of a project, the newest", positive)
    .option("--all", "of every project")
    .option("--dry-run", "only show them")
    .addOption(format())
    .action(async (flags: SessionPruneFlags) =>
      (await import("../commands/index.ts")).sessionPrune.pruneSessions(flags),
    )
  placeAsItIs(session.command("delete"))
    .description("remove sessions with everything in them")
    .argument("<id...>", "the sessions")
    .action(async (ids: string[], flags: PlaceFlags) =>
      (await import("../commands/index.ts")).session.deleteSessions(ids, flags),
    )
}
