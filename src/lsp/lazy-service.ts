import type { LanguageService, LanguageServiceOptions } from "./service.ts"

/** Creates a language service that loads its code on first use. */
export function lazyLanguageService(options: LanguageServiceOptions): LanguageService {
  let opened: Promise<LanguageService> | undefined
  const open = () => {
    opened ??= import("./service.ts").then(({ createLanguageService }) => createLanguageService(options))
    return opened
  }
  return {
    find: async (path) => (await open()).find(path),
    ask: async (question) => (await open()).ask(question),
    diagnose: async (path, signal) => (await open()).diagnose(path, signal),
    changed: async (changes, signal) => (opened ? (await opened).changed(changes, signal) : []),
    async close() {
      if (opened) await (await opened).close()
    },
  }
}
