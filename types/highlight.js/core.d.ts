import type { LanguageFn } from "./language.js"

/** The part of highlight.js that Tackle uses. Its own types need those of a browser. */
declare const hljs: {
  registerLanguage(name: string, language: LanguageFn): void
  getLanguage(nameOrAlias: string): object | undefined
  highlight(code: string, options: { language: string; ignoreIllegals?: boolean }): { value: string }
}
export default hljs
