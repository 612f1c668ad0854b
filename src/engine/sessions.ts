import { rm } from "node:fs/promises"
import { join } from "node:path"
import { parseModelName } from "../model/model.ts"
import type { Session, Workspace } from "../schema/session.ts"
import type { PageReader } from "../session/history.ts"
import { isAnyHeld, SessionHeldError, sessionStatus, withLeases } from "../session/lease.ts"
import { descendants } from "../session/lineage.ts"
import { isForWorkers } from "../session/queued-runs.ts"
import type { SessionEngine } from "../session/session-engine.ts"
import { createStats } from "../session/stats.ts"
import { sessionPages } from "../store/session-pages.ts"
import { type ListedRow, maxSessions } from "../store/store.ts"
import type { JobTable } from "../tools/bash/background-jobs.ts"
import { createOldChooser } from "./housekeeping.ts"
import type { ModelChoice } from "./models.ts"
import type { OpenSessions } from "./open-sessions.ts"
import type { PruneResult, Sessions } from "./tackle.ts"

/** The parts of an engine that only {@link createSessions} needs. */
interface SessionParts {
  opened: OpenSessions
  jobs: Pick<JobTable, "killOf">
  models: ModelChoice
  /** Directories with one subdirectory per session. Deleting a session also deletes its subdirectories. */
  kept: readonly string[]
  /**
   * Describes the workspace of a new session for other machines. Undefined if other machines cannot rebuild the
   * workspace.
   */
  describeWorkspace?(): Promise<Workspace>
}

/** Creates the public functions for stored sessions. */
export function createSessions(
  engine: SessionEngine,
  { opened, jobs, models, kept, describeWorkspace }: SessionParts,
): Sessions {
  const { store, bus, directory, worktree, defaultAgent, permission, questions, onProblem } = engine

  async function withSubagents(session: Session): Promise<Session[]> {
    return [session, ...(await descendants(store, session.id))]
  }

  /**
   * Deletes a session with its subagents' sessions, jobs and files. Returns false if the session does not exist. If
   * another engine uses one of the sessions, throws `SessionHeldError` and deletes nothing.
   */
  async function remove(id: string): Promise<boolean> {
    const session = await store.session(id)
    if (!session) return false
    const all = await withSubagents(session)
    const family = all.map((each) => each.id)
    const handles = opened.all(family)
    await Promise.all(handles.map((handle) => handle.abort()))
    return withLeases({ store, sessionIDs: family, holder: engine.holder }, async () => {
      for (const handle of handles) opened.forget(handle.id)
      await jobs.killOf(family)
      const deleted = await store.deleteSession(id)
      // An id with path separators would refer to a directory outside `root`.
      const names = family.filter((each) => /^\w+$/.test(each))
      if (!deleted) return false
      for (const each of all) bus.publish({ type: "session.deleted", sessionID: each.id, session: each })
      for (const root of kept)
        for (const name of names) await rm(join(root, name), { recursive: true, force: true })
      return true
    })
  }

  /** Deletes a session. Returns false if the session, or one of its subagents' sessions, is in use. */
  async function removeUnlessHeld(id: string): Promise<boolean> {
    try {
      await remove(id)
      return true
    } catch (error) {
      if (error instanceof SessionHeldError) return false
      // Another process deleted the session first.
      if (!(await store.session(id))) return true
      throw error
    }
  }

  /**
   * Releases unused disk space. If this fails, the failure is only reported, because the sessions have been deleted
   * anyway.
   */
  async function reclaim(): Promise<void> {
    await store.reclaim().catch((error: unknown) => onProblem("could not release unused disk space", error))
  }

  const sessions: Sessions = {
    async create({ agent = defaultAgent, model, title = "", parentID, tenant } = {}) {
      await models.check(engine.agent(agent), model)
      const parent = parentID === undefined ? undefined : await store.session(parentID)
      return opened.begin({
        title,
        directory,
        worktree,
        agent,
        model: model === undefined ? undefined : parseModelName(model),
        parentID,
        tenant: parent ? parent.tenant : tenant,
        workspace: await describeWorkspace?.(),
        replayed: engine.recorded ? true : undefined,
      })
    },
    get: opened.get,
    streaming: opened.streaming,
    async latest() {
      const scope = { worktree, parentID: null }
      const [newest] = await store.sessions({ ...scope, limit: 1 })
      if (newest && !newest.replayed) return opened.handleOf(newest)
      for await (const page of sessionPages(store, scope)) {
        const session = page.map((row) => row.session).find(({ replayed }) => !replayed)
        if (session) return opened.handleOf(session)
      }
      return undefined
    },
    async list({ everywhere = false, limit, parentID = null, search = "" } = {}) {
      const filter = { parentID, worktree: everywhere ? undefined : worktree }
      if (search.trim() === "") {
        const rows = await firstOf(limit, (page) => store.page({ ...filter, ...page }))
        return rows.map(({ session }) => session)
      }
      const { matchOf } = await import("../store/search.ts")
      const hits = await firstOf(limit, (page) => store.search(search, { ...filter, ...page }))
      return hits.map((hit) => ({ ...hit.session, match: matchOf(hit, search) }))
    },
    async status(id) {
      if (!(await store.session(id))) return undefined
      const isActive = opened.find(id)?.isActive || (engine.dispatch && (await isForWorkers(store, id)))
      const asking = [...permission.pending(), ...questions.pending()].map(({ sessionID }) => sessionID)
      return sessionStatus(store, id, { isActive, asking })
    },
    holder: engine.holder,
    work: async (id, work) => (await opened.local(id))?.work(work),
    async delete(id) {
      const deleted = await remove(id)
      if (deleted) await reclaim()
      return deleted
    },
    async stats({ everywhere = false, session: id } = {}) {
      const stats = createStats()
      const count = async (session: Session) => {
        try {
          stats.add(session, await store.messages(session.id))
        } catch (error) {
          onProblem(`the session ${session.id} cannot be read and is not counted`, error)
        }
      }
      if (id !== undefined) {
        const session = await store.session(id)
        if (session) for (const each of await withSubagents(session)) await count(each)
        return stats.result()
      }
      for await (const page of sessionPages(store, everywhere ? {} : { worktree }))
        for (const { session } of page) await count(session)
      return stats.result()
    },
    async prune({ everywhere = false, dryRun = false, ...choice }) {
      const place = everywhere ? {} : { worktree }
      const chooser = createOldChooser(choice)
      const old: Session[] = []
      for await (const page of sessionPages(store, { parentID: null, ...chooser.filter, ...place }))
        old.push(...page.map((row) => row.session).filter(chooser.isOld))
      const result: PruneResult = { deleted: [], held: [] }
      for (const session of old.reverse()) {
        const family = await withSubagents(session)
        const held = await isAnyHeld(
          store,
          family.map(({ id }) => id),
        )
        const goes = !held && (dryRun || (await removeUnlessHeld(session.id)))
        result[goes ? "deleted" : "held"].push(session)
      }
      if (!dryRun && result.deleted.length > 0) await reclaim()
      return result
    },
    compact: async (id, choice) => (await sessions.get(id))?.compact(choice),
    undo: async (id, choice) => (await sessions.get(id))?.undo(choice),
    redo: async (id, choice) => (await sessions.get(id))?.redo(choice),
    async export(id, { sanitize = false } = {}) {
      const { exportSession, sanitizeArchive } = await archives()
      const archive = await exportSession(store, id)
      return archive && sanitize ? sanitizeArchive(archive) : archive
    },
    async diff(id) {
      const session = await store.session(id)
      if (!session) return undefined
      const { diffSession } = await import("../session/session-diff.ts")
      const readPage: PageReader = (page) => store.messages(id, page)
      const diffs = await diffSession({ readPage, contents: engine.contents, worktree: session.worktree })
      return engine.mask.value(diffs)
    },
    async import(archive, { copy = false, tenant } = {}) {
      const { importSession } = await archives()
      const session = await importSession(store, archive, { directory, worktree, tenant, copy })
      return opened.made(session, await store.sequence(session.id))
    },
    async fork(id, { at } = {}) {
      const { forkSession } = await archives()
      const session = await forkSession(store, id, at)
      return session && opened.made(session, await store.sequence(session.id))
    },
  }
  return sessions
}

/**
 * Loads the modules for archives on demand, because most runs do not need them, and creating the archive schema is
 * slow.
 */
async function archives() {
  const [transfer, sanitize] = await Promise.all([
    import("../session/transfer-session.ts"),
    import("../session/archive.ts"),
  ])
  return { ...transfer, ...sanitize }
}

/** Returns up to `limit` rows of a list. Reads at most {@link maxSessions} rows at once. */
async function firstOf<T extends ListedRow>(
  limit = 100,
  read: (page: { after?: string; limit: number }) => Promise<T[]>,
): Promise<T[]> {
  const found: T[] = []
  while (found.length < limit) {
    const size = Math.min(limit - found.length, maxSessions)
    const page = await read({ after: found.at(-1)?.cursor, limit: size })
    found.push(...page)
    if (page.length < size) break
  }
  return found
}
