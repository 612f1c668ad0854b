import { createFallbackEngine } from "./fallback-engine.ts"
import { createRipgrepEngine } from "./ripgrep-engine.ts"
import { type SearchEngine, withFallback } from "./search-engine.ts"

/** What the tools search with: ripgrep, or our own walk where its binary is missing or does not start. */
export const defaultSearchEngine: SearchEngine = withFallback(createRipgrepEngine(), createFallbackEngine())
