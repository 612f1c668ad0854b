/**
 * What the commands do, but for `run`, in one module: cut up by command the bundle has twice the files, each of which
 * takes a millisecond.
 */
export * as agent from "./agent.ts"
export * as agentCreate from "./agent-create.ts"
export * as auth from "./auth.ts"
export * as config from "./config.ts"
export * as doctor from "./doctor.ts"
export * as gateway from "./gateway.ts"
export * as mcp from "./mcp.ts"
export * as mcpServe from "./mcp-serve.ts"
export * as mcpServers from "./mcp-servers.ts"
export * as models from "./models.ts"
export * as modelsCheck from "./models-check.ts"
export * as permission from "./permission.ts"
export * as session from "./session.ts"
export * as sessionCompact from "./session-compact.ts"
export * as sessionPrune from "./session-prune.ts"
export * as sessionUndo from "./session-undo.ts"
export * as stats from "./stats.ts"
export * as tool from "./tool.ts"
export * as trust from "./trust.ts"
