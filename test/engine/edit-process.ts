/**
 * Makes many edits of one file in its own process: `edit-process.ts <directory> <name> <count> <tool>`. Retries an edit
 * that fails. Prints the number of edits that failed.
 */
import { createTackle } from "../../src/engine/create-tackle.ts"

const [directory = "", name = "", count = "0", tool = "edit"] = process.argv.slice(2)
const tackle = await createTackle({
  directory,
  dataDirectory: `${directory}/.data`,
  permission: { "*": "allow" },
})
let failed = 0
for (let index = 0; index < Number(count); ) {
  const [from, to] = [`${name}${index}: open`, `${name}${index}: done`]
  const input =
    tool === "edit"
      ? { filePath: "list.txt", oldString: from, newString: to }
      : { patchText: `*** Begin Patch\n*** Update File: list.txt\n@@\n-${from}\n+${to}\n*** End Patch` }
  const { state } = await tackle.callTool({ tool, input: JSON.stringify(input) })
  if (state.status === "completed") index += 1
  else if (!/changed (?:since|while|after)/.test(state.error)) throw new Error(state.error)
  else failed += 1
}
await tackle.close()
process.stdout.write(`${failed}\n`)
