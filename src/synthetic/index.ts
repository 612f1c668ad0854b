/** `tackle/synthetic`: tool calling for models that do not support it, as AI SDK middleware and as a parser. */
import "../util/require-node.ts"

export { type DialectName, dialectNames, type SyntheticTool } from "./dialect.ts"
export { dialectFor } from "./dialects.ts"
export { type SyntheticOptions, syntheticTools, withSyntheticTools } from "./middleware.ts"
export { type CallParser, createCallParser, type ParserEvent } from "./parser.ts"
