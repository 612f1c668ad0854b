import type { Info } from "../tool/tool.ts"
import { type BashOptions, createBashTool } from "./bash.ts"
import { batchTool } from "./batch.ts"
import { editTool } from "./edit.ts"
import { globTool } from "./glob.ts"
import { grepTool } from "./grep.ts"
import { invalidTool } from "./invalid.ts"
import { jobTool } from "./job.ts"
import { listTool } from "./list.ts"
import { questionTool } from "./question.ts"
import { readTool } from "./read.ts"
import { createTaskTool, type TaskOptions } from "./task.ts"
import { todoreadTool, todowriteTool } from "./todo.ts"
import { writeTool } from "./write.ts"

/** What the host decides about single tools. */
export type BuiltinOptions = BashOptions & TaskOptions

/** Every built-in tool, in the order in which models are offered them. A new one is a line here. */
export function builtinTools(options: BuiltinOptions): Info[] {
  return [
    readTool,
    globTool,
    grepTool,
    listTool,
    editTool,
    writeTool,
    createBashTool(options),
    jobTool,
    createTaskTool(options),
    todowriteTool,
    todoreadTool,
    questionTool,
    batchTool,
    invalidTool,
  ]
}
