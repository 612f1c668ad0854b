import { createFallbackEngine } from "./fallback-engine.ts"
import { createRipgrepEngine } from "./ripgrep-engine.ts"
import { EngineUnavailableError, type SearchEngine } from "./search-engine.ts"

/** Returns an engine that uses the first engine, or the second engine if the first is unavailable. */
export function withFallback(first: SearchEngine, second: SearchEngine): SearchEngine {
  async function* either<T>(run: (engine: SearchEngine) => AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* run(first)
      return
    } catch (error) {
      if (!(error instanceof EngineUnavailableError)) throw error
    }
    yield* run(second)
  }
  return {
    files: (query) => either((engine) => engine.files(query)),
    search: (query) => either((engine) => engine.search(query)),
  }
}

/** Uses ripgrep, or the fallback engine if ripgrep is missing or does not start. */
export const defaultSearchEngine: SearchEngine = withFallback(createRipgrepEngine(), createFallbackEngine())
