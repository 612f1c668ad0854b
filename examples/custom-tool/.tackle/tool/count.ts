import { readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { Tool, type ToolContext } from "tackle/tool"
import { z } from "zod"

const parameters = z.object({
  file: z.string().describe("Text file, absolute or relative to the working directory"),
})

/** Offered as `count`, because the default export has the name of the file. */
export default Tool.define("count", {
  description: "Counts the words of a text file. To read the file use read.",
  parameters,
  access: "read",
  async execute({ file }, ctx) {
    const words = await wordsOf(file, ctx)
    return { title: file, output: `${words.length} words`, metadata: { words: words.length } }
  },
})

/** Offered as `count_longest`, because the name of any other export is added to the name of the file. */
export const longest = Tool.define("longest", {
  description: "Finds the longest word of a text file.",
  parameters,
  access: "read",
  async execute({ file }, ctx) {
    const words = await wordsOf(file, ctx)
    const [first] = words.sort((a, b) => b.length - a.length)
    if (first === undefined) throw new Error(`${file} holds no words. Choose another file.`)
    return { title: file, output: first }
  },
})

/** Asks as `read` does. The rules for files outside the project and for secrets therefore apply to this tool, too. */
async function wordsOf(file: string, ctx: ToolContext): Promise<string[]> {
  const path = resolve(ctx.directory, file)
  await ctx.ask({ permission: "read", patterns: [path], always: [path] })
  const text = await readFile(path, { encoding: "utf8", signal: ctx.abort })
  return text.match(/\p{L}+/gu) ?? []
}
