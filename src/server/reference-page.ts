import { createHash } from "node:crypto"

/** The properties of a JSON Schema that the reference shows. */
export interface ShownSchema {
  $ref?: string
  type?: string | readonly string[]
  const?: unknown
  enum?: readonly unknown[]
  items?: ShownSchema | false
  prefixItems?: readonly ShownSchema[]
  properties?: Readonly<Record<string, ShownSchema>>
  required?: readonly string[]
  oneOf?: readonly ShownSchema[]
  anyOf?: readonly ShownSchema[]
  description?: string
  /** Type of a stream's messages. */
  contentSchema?: ShownSchema
}

/** The properties of an operation that the reference shows. */
export interface Operation {
  operationId?: string
  security?: readonly object[]
  summary?: string
  description?: string
  parameters?: readonly {
    name: string
    in: string
    required?: boolean
    description?: string
    schema?: ShownSchema
  }[]
  requestBody?: { content: Readonly<Record<string, { schema: ShownSchema }>> }
  responses: Readonly<
    Record<string, { description: string; content?: Readonly<Record<string, { schema: ShownSchema }>> }>
  >
}

/** The properties of an OpenAPI document that the reference shows. */
export interface Document {
  info: { title: string; version: string; description?: string }
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  components: { schemas: Readonly<Record<string, ShownSchema>> }
}

/** Returns all operations in a document, in document order. */
export function operationsOf({ paths }: Document): { method: string; path: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
}

/** Returns the fields with a description in a schema's alternatives, without duplicates. */
export function alternativeFields({ oneOf, anyOf }: ShownSchema): { name: string; description: string }[] {
  const fields = (oneOf ?? anyOf ?? []).flatMap(({ properties = {} }) => Object.entries(properties))
  const described = fields.flatMap(([name, { description }]) => (description ? [{ name, description }] : []))
  return [...new Map(described.map((field) => [JSON.stringify(field), field])).values()]
}

/** Returns a schema's type as text, such as `Session[]` or `"once" | "reject"`. */
export function typeText(schema: ShownSchema | undefined): string {
  if (schema === undefined) return "any"
  if (schema.contentSchema) return `stream of ${typeText(schema.contentSchema)}`
  const { $ref, const: constant, enum: values, oneOf, anyOf, type, items, prefixItems } = schema
  if ($ref !== undefined) return $ref.slice($ref.lastIndexOf("/") + 1)
  if (constant !== undefined) return JSON.stringify(constant)
  if (values) return values.map((value) => JSON.stringify(value)).join(" | ")
  const alternatives = oneOf ?? anyOf
  if (alternatives) return alternatives.map(typeText).join(" | ")
  if (prefixItems) return `[${prefixItems.map(typeText).join(", ")}]`
  if (type === "array") {
    const item = typeText(items || undefined)
    return / \| /.test(item) ? `(${item})[]` : `${item}[]`
  }
  if (type === "object" && schema.properties) {
    const fields = Object.entries(schema.properties).map(
      ([name, inner]) => `${name}${schema.required?.includes(name) ? "" : "?"}: ${typeText(inner)}`,
    )
    return `{ ${fields.join(", ")} }`
  }
  return typeof type === "string" ? type : (type?.join(" | ") ?? "any")
}

const style = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
h2 { font-size: 1.1rem; margin-top: 2.5rem; border-top: 1px solid #8888; padding-top: 1rem }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem 0.3rem 0; border-bottom: 1px solid #8884 }
`

/**
 * Returns the API reference as one HTML page that needs no scripts or other files. Also returns the hash of its style
 * sheet for the content security policy.
 */
export function referencePage(document: Document): { html: string; styleHash: string } {
  const { info, components } = document
  const operations = operationsOf(document).map(
    ({ method, path, operation }) =>
      `<h2 id="${escapeHtml(anchor(method, path))}"><code>${method} ${escapeHtml(path)}</code></h2>${operationHtml(operation)}`,
  )
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `<h2 id="${escapeHtml(name)}">${escapeHtml(name)}</h2>${schemaHtml(schema)}`,
  )
  const html = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escapeHtml(info.title)} API</title><style>${style}</style></head>
<body>
<h1>${escapeHtml(info.title)} API ${escapeHtml(info.version)}</h1>
<p>${markup(info.description ?? "")} The document is at <a href="/openapi.json">/openapi.json</a>.</p>
<main>${[...operations, ...schemas].join("\n")}</main>
</body>
</html>
`
  return { html, styleHash: `sha256-${createHash("sha256").update(style).digest("base64")}` }
}

function operationHtml({ summary, description, parameters = [], requestBody, responses }: Operation): string {
  const body = requestBody?.content["application/json"]?.schema
  const rows = parameters.map((each) =>
    row(`${each.name}${each.required ? "" : "?"}`, each.in, typeText(each.schema), each.description),
  )
  if (body) rows.push(row("body", "", typeText(body)))
  const answers = Object.entries(responses).map(([status, { description: text, content = {} }]) => {
    const [type] = Object.values(content)
    return row(status, "", type ? typeText(type.schema) : "", text)
  })
  const table = (lines: readonly string[]) =>
    lines.length > 0 ? `<table><tbody>${lines.join("")}</tbody></table>` : ""
  const text = markup([summary, description].filter(Boolean).join(". ")).replaceAll("\n\n", "</p><p>")
  return `<p>${text}</p>${table(rows)}<h3>Responses</h3>${table(answers)}`
}

function schemaHtml(schema: ShownSchema): string {
  if (!schema.properties) {
    const fields = alternativeFields(schema).map(({ name, description }) => row(name, "", "", description))
    return `<p><code>${escapeHtml(typeText(schema))}</code></p><table><tbody>${fields.join("")}</tbody></table>`
  }
  const rows = Object.entries(schema.properties).map(([name, inner]) =>
    row(`${name}${schema.required?.includes(name) ? "" : "?"}`, "", typeText(inner), inner.description),
  )
  return `<table><tbody>${rows.join("")}</tbody></table>`
}

function row(name: string, place: string, type: string, description = ""): string {
  return `<tr><td><code>${escapeHtml(name)}</code> ${escapeHtml(place)}</td><td><code>${escapeHtml(type)}</code></td><td>${markup(description)}</td></tr>`
}

function anchor(method: string, path: string): string {
  return `${method.toLowerCase()}${path.replace(/[{}]/g, "").replaceAll("/", "-")}`
}

function markup(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>")
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
