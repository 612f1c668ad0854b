/** `tackle/synthetic`: tool calling for models without it, as middleware of the AI SDK and as a parser alone. */
export { type DialectName, dialectNames, type SyntheticTool } from "./dialect.ts"
export { dialectFor } from "./dialects.ts"
export { type SyntheticOptions, syntheticTools, withSyntheticTools } from "./middleware.ts"
export { type CallParser, createCallParser, type ParserEvent } from "./parser.ts"
