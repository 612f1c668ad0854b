import * as z from "zod"
import { changeFile, planWrite } from "../files/change-file.ts"
import { define } from "../tool/tool.ts"
import { readText } from "../util/file-system.ts"
import { counted } from "../util/words.ts"
import { errorsAfterEdit } from "./lsp/findings.ts"

const parameters = z.lazy(() =>
  z.object({
    filePath: z.string().min(1).describe("File to write, absolute or relative"),
    content: z.string().describe("Complete content of the file"),
  }),
)

/** Creates a file or replaces its content. */
export const writeTool = define("write", {
  description: readText(new URL("./write.md", import.meta.url)),
  parameters,
  access: "write",
  asksFirst: true,
  async execute({ filePath, content }, ctx) {
    const { change, title, formatting, metadata } = await changeFile(ctx, filePath, (before, title) =>
      planWrite(before, title, content),
    )
    const size = `${counted(countLines(content), "line")}, ${counted(change.bytes.length, "byte")}`
    const kind = metadata.exists ? "changed" : "created"
    const errors = await errorsAfterEdit(ctx, [{ path: metadata.file.path, kind }])
    const done = metadata.exists ? "Overwrote" : "Created"
    return { title, output: `${done} ${title} (${size}).${formatting}${errors}`, metadata }
  },
})

function countLines(content: string): number {
  const breaks = content.split("\n").length - 1
  return content === "" || content.endsWith("\n") ? breaks : breaks + 1
}
