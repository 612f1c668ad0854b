import type { Session } from "../schema/session.ts"
import type { Store } from "../store/store.ts"
import { archiveHead } from "./archive.ts"
import { historyPages } from "./history.ts"
import { descendants } from "./lineage.ts"
import { sanitize } from "./sanitize-archive.ts"

/**
 * Returns the result of `exportSession` as a stream of JSON text with one line per message. Only one page of messages
 * is in memory at a time. Returns undefined if the session does not exist.
 */
export async function archiveText(
  store: Store,
  id: string,
  options: { sanitize?: boolean } = {},
): Promise<AsyncIterable<string> | undefined> {
  const session = await store.session(id)
  const json = (value: unknown) => JSON.stringify(options.sanitize ? sanitize(value) : value)
  return session && archivePieces(store, session, json)
}

async function* archivePieces(
  store: Store,
  session: Session,
  json: (value: unknown) => string,
): AsyncGenerator<string> {
  yield `{${JSON.stringify(archiveHead).slice(1, -1)},`
  yield* recordPieces(store, session, json)
  yield ',"children":['
  for (const [index, child] of (await descendants(store, session.id)).entries()) {
    yield index === 0 ? "\n{" : ",\n{"
    yield* recordPieces(store, child, json)
    yield "}"
  }
  yield "]}\n"
}

async function* recordPieces(
  store: Store,
  session: Session,
  json: (value: unknown) => string,
): AsyncGenerator<string> {
  yield `"session":${json(session)},"messages":[`
  yield* listPieces(
    historyPages((page) => store.messages(session.id, page)),
    json,
  )
  yield `],"todos":${json(await store.todos(session.id))}`
}

/** Yields the items of a JSON list, one line each, without brackets. */
export async function* listPieces(
  pages: AsyncIterable<readonly unknown[]>,
  json: (value: unknown) => string = JSON.stringify,
): AsyncGenerator<string> {
  let separator = "\n"
  for await (const page of pages) {
    for (const item of page) {
      yield separator + json(item)
      separator = ",\n"
    }
  }
}
