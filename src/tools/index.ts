import type { ModelRef } from "../schema/message.ts"
import type { Definition, Info } from "../tool/tool.ts"
import { applyPatchTool } from "./apply-patch/apply-patch.ts"
import { type Features, unavailableReason } from "./availability.ts"
import { type BashOptions, createBashTool } from "./bash/bash.ts"
import { jobTool } from "./bash/job.ts"
import { batchTool } from "./batch.ts"
import { editTool } from "./edit/edit.ts"
import { globTool } from "./glob.ts"
import { grepTool } from "./grep.ts"
import { invalidTool } from "./invalid.ts"
import { listTool } from "./list.ts"
import { lspTool } from "./lsp/lsp.ts"
import { planEnterTool, planExitTool } from "./plan/plan.ts"
import { questionTool } from "./question.ts"
import { readTool } from "./read.ts"
import schemas from "./schemas.json" with { type: "json" }
import { createSkillTool, type SkillOptions } from "./skill.ts"
import { createTaskTool, type TaskOptions } from "./task.ts"
import { todoreadTool, todowriteTool } from "./todo.ts"
import { toolSearchTool } from "./tool-search.ts"
import type { SearchBackend } from "./web/choose-search.ts"
import { createWebfetchTool } from "./web/webfetch.ts"
import { createCodesearchTool, createWebsearchTool } from "./web/websearch.ts"
import { writeTool } from "./write.ts"

/** A built-in tool and a function that checks its availability. */
export interface BuiltinTool {
  tool: Info
  /** Returns why the tool is unavailable, or undefined if it is available. See {@link unavailableReason}. */
  unavailable: (model?: ModelRef) => string | undefined
}

/** Options and services that some built-in tools need. */
export interface BuiltinOptions {
  bash: BashOptions
  task: TaskOptions
  skills: SkillOptions
  features: Features
  search: SearchBackend
}

/** Returns all built-in tools in the order in which they are offered to models. */
export function builtinTools({ bash, task, skills, features, search }: BuiltinOptions): BuiltinTool[] {
  const tools = [
    readTool,
    globTool,
    grepTool,
    listTool,
    lspTool,
    editTool,
    writeTool,
    applyPatchTool,
    createBashTool(bash),
    jobTool,
    createTaskTool(task),
    createSkillTool(skills),
    createWebfetchTool(),
    createWebsearchTool(search),
    createCodesearchTool(search),
    todowriteTool,
    todoreadTool,
    questionTool,
    planEnterTool,
    planExitTool,
    batchTool,
    toolSearchTool,
    invalidTool,
  ]
  const prepared: PreparedSchemas = {
    ...schemas.always,
    ...(bash.sandboxed ? schemas.sandboxed : schemas.bare),
  }
  return tools.map((tool) => ({
    tool: withSchema(tool, prepared[tool.id]),
    unavailable: (model) => unavailableReason(tool.id, features, model),
  }))
}

/**
 * JSON Schemas for the parameters, keyed by tool id. `node scripts/tool-docs.ts` generates them in advance, because
 * generating them at every start would take 5% of the start time.
 */
type PreparedSchemas = Readonly<Record<string, Definition["jsonSchema"]>>

function withSchema(tool: Info, jsonSchema: Definition["jsonSchema"]): Info {
  if (jsonSchema === undefined) return tool
  return { id: tool.id, init: async (context) => ({ ...(await tool.init(context)), jsonSchema }) }
}
