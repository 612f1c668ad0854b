import hljs from "highlight.js/lib/core"
import bash from "highlight.js/lib/languages/bash"
import c from "highlight.js/lib/languages/c"
import cpp from "highlight.js/lib/languages/cpp"
import csharp from "highlight.js/lib/languages/csharp"
import css from "highlight.js/lib/languages/css"
import diff from "highlight.js/lib/languages/diff"
import dockerfile from "highlight.js/lib/languages/dockerfile"
import go from "highlight.js/lib/languages/go"
import ini from "highlight.js/lib/languages/ini"
import java from "highlight.js/lib/languages/java"
import javascript from "highlight.js/lib/languages/javascript"
import json from "highlight.js/lib/languages/json"
import kotlin from "highlight.js/lib/languages/kotlin"
import php from "highlight.js/lib/languages/php"
import python from "highlight.js/lib/languages/python"
import ruby from "highlight.js/lib/languages/ruby"
import rust from "highlight.js/lib/languages/rust"
import sql from "highlight.js/lib/languages/sql"
import typescript from "highlight.js/lib/languages/typescript"
import xml from "highlight.js/lib/languages/xml"
import yaml from "highlight.js/lib/languages/yaml"
import type { Paint, Theme } from "./theme.ts"

const languages = {
  ...{ bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, php, python },
  ...{ ruby, rust, sql, typescript, xml, yaml },
}
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language)

/**
 * Highlights code with the theme's colors and returns its lines. Returns undefined if the language is unknown. The
 * language may be an alias, such as `ts`.
 */
export function highlight(code: string, language: string, theme: Theme): string[] | undefined {
  if (!hljs.getLanguage(language)) return undefined
  return paintedLines(hljs.highlight(code, { language, ignoreIllegals: true }).value, theme)
}

/** Matches the HTML that the library returns. The HTML consists only of these elements and entities. */
const pieces = /<span class="([^"]*)">|(<\/span>)|([^<]+)/g
const entities: Readonly<Record<string, string>> = {
  ...{ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" },
}

/**
 * Converts the library's HTML to lines. Each line contains all of its styles, because it can be drawn without the
 * previous line.
 */
function paintedLines(html: string, theme: Theme): string[] {
  const open: string[] = []
  let text = ""
  for (const [, scope, end, content] of html.matchAll(pieces)) {
    if (scope !== undefined) open.push(scope)
    else if (end !== undefined) open.pop()
    else {
      const plain = (content ?? "").replaceAll(/&[#\w]+;/g, (entity) => entities[entity] ?? entity)
      const paint = paintOf(open, theme)
      text += paint ? plain.split("\n").map(paint).join("\n") : plain
    }
  }
  return text.split("\n")
}

/** Returns the color of the innermost scope that has a color. */
function paintOf(scopes: readonly string[], theme: Theme): Paint | undefined {
  for (const scope of scopes.toReversed()) {
    const [name = ""] = scope.replace("hljs-", "").split(" ")
    if (name === "subst") return undefined
    const paint = paints[name]
    if (paint) return theme[paint]
  }
  return undefined
}

/** Colors for the library's scopes, keyed by scope name. Other scopes have the color of normal text. */
const paints: Readonly<
  Record<string, "keyword" | "string" | "comment" | "code" | "heading" | "added" | "removed">
> = {
  ...{ keyword: "keyword", literal: "keyword", "selector-tag": "keyword", name: "keyword" },
  ...{ string: "string", regexp: "string", char: "string" },
  ...{ comment: "comment", quote: "comment", meta: "comment", doctag: "comment" },
  ...{ number: "code", symbol: "code", attr: "code", attribute: "code", "selector-attr": "code" },
  ...{
    title: "heading",
    type: "heading",
    built_in: "heading",
    section: "heading",
    "selector-class": "heading",
  },
  ...{ "selector-id": "heading", addition: "added", deletion: "removed" },
}
