/** One of many processes that write two files at the same time: `private-file-writer.ts <directory> <name> <count>`. */
import { join } from "node:path"
import { openTokenStore } from "../../src/mcp/client/oauth/token-store.ts"
import { openToolFingerprints } from "../../src/mcp/client/tool-fingerprints.ts"

const [directory = "", name = "", count = "0"] = process.argv.slice(2)
const tokens = openTokenStore(join(directory, "mcp-auth.json"))
const server = { id: name, settings: { type: "local" as const, command: ["x"] } }
for (let index = 0; index < Number(count); index += 1) {
  tokens.update(`https://${name}.test/${index}`, () => ({ client: { client_id: `${name}-${index}` } }))
  const tool = { name: `t${index}`, inputSchema: { type: "object" as const } }
  await openToolFingerprints(join(directory, "mcp-tools.json"), `/w/${name}`).check(
    server,
    [tool],
    async () => {},
  )
}
