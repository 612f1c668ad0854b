/** Defines the grammar of a language for highlight.js. */
export type LanguageFn = { readonly __languageFn: never }

declare const language: LanguageFn
export default language
