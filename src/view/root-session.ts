import type { TackleApi } from "../client/api.ts"

/** Returns the id of a session's root session, or undefined if `id` is undefined. */
export async function rootOf(
  api: Pick<TackleApi, "sessions">,
  { id, parentID }: { id?: string; parentID?: string },
): Promise<string | undefined> {
  if (parentID === undefined) return id
  const parent = await (await api.sessions.get(parentID))?.info()
  return rootOf(api, { id: parentID, parentID: parent?.parentID })
}
