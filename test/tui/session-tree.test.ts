import { expect, test } from "vitest"
import { sessionTree } from "../../src/tui/session-tree.ts"

function drawn(...sessions: [id: string, parentID: string | undefined, created: number, updated: number][]) {
  const entries = sessions.map(([id, parentID, created, updated]) => ({
    ...{ id, parentID },
    time: { created, updated },
  }))
  return sessionTree(entries).map(({ session, lead }) => `${lead}${session.id}`)
}

test("connects each session with its parent, and puts the tree with the newest change first", () => {
  expect(
    drawn(
      ["old", undefined, 1, 2],
      ["root", undefined, 3, 4],
      ["second", "root", 7, 8],
      ["first", "root", 5, 6],
      ["deep", "first", 9, 100],
      ["deeper", "deep", 10, 11],
      ["new", undefined, 20, 50],
    ),
  ).toEqual(["root", "├ first", "│ └ deep", "│   └ deeper", "└ second", "new", "old"])
})

test("shows a session without its parent as a root", () => {
  expect(drawn(["fork", "deleted", 1, 2], ["other", undefined, 3, 4])).toEqual(["other", "fork"])
})
