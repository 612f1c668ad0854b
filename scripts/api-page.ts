import { createApp } from "../src/server/app.ts"
import { createEngines } from "../src/server/engines.ts"
import {
  alternativeFields,
  type Document,
  type Operation,
  operationsOf,
  type ShownSchema,
  typeText,
} from "../src/server/reference-page.ts"
import { openApiDocument } from "../src/server/routes/documentation-routes.ts"
import { createAuthenticator } from "../src/server/tokens.ts"
import { createMemoryStore } from "../src/store/memory.ts"

/** Returns the server's OpenAPI document. */
export function apiDocument(): Document {
  const unused = () => {
    throw new Error("The document needs no engine.")
  }
  const engines = createEngines({
    roots: [],
    open: unused,
    isActive: unused,
    idleMs: 0,
    maxEngines: 0,
    onProblem: unused,
  })
  const context = {
    version: "",
    store: createMemoryStore(),
    engines,
    assertStartsWork: unused,
    endStreams: unused,
    streamSignal: unused,
    otherRequests: { list: unused, subscribe: unused },
    followEvents: unused,
    heartbeatMs: 0,
    maxWaiting: 0,
  }
  const guard = {
    host: "127.0.0.1",
    origins: [],
    authenticator: createAuthenticator([]),
    maxBodyBytes: 0,
    maxRequests: 0,
  }
  return openApiDocument(createApp(context, guard, unused), "")
}

/** Returns `docs/api.md`. */
export function apiPage(document = apiDocument()): string {
  const { schemas } = document.components
  const operations = operationsOf(document)
  const everywhere = operations
    .filter(({ operation }) => operation.security)
    .map(({ operation }) => errorsOf(operation))
    .reduce((common, codes) => common.filter((code) => codes.includes(code)))
  const routes = operations.map(({ method, path, operation }) => {
    const { summary, description, parameters = [], requestBody, responses } = operation
    const body = requestBody?.content["application/json"]?.schema
    const queries = parameters.filter((each) => each.in !== "path")
    const fields = queries.map((each) =>
      field(each.name, each.required === true, typeText(each.schema), each.description),
    )
    const answers = Object.entries(responses).flatMap(([status, { description: text, content = {} }]) => {
      if (!status.startsWith("2")) return []
      const [type] = Object.values(content)
      return [`Answer ${status}: ${type ? `\`${typeText(type.schema)}\`` : text}`]
    })
    return [
      `### \`${method} ${path}\``,
      [summary, description].filter(Boolean).map(sentence).join(" "),
      table(fields),
      body ? `Body: \`${typeText(body)}\`` : "",
      answers.join("\n\n"),
      errorsText(errorsOf(operation).filter((code) => !everywhere.includes(code))),
    ]
  })
  const types = Object.entries(schemas)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, schema]) => [`### \`${name}\``, ...describe(schema)])
  return [
    "# HTTP API",
    "All routes of [`tackle serve`](server.md). `node scripts/api-docs.ts` generates this page from the OpenAPI document,\nwhich a running server returns at `/openapi.json`.",
    "## Routes",
    "The tables contain the query parameters and the headers. Errors are listed with their status and code. A route\nthat needs a token can also return these errors:",
    errorsText(everywhere),
    ...routes.flat(),
    "## Types",
    "A field whose name ends with `?` is optional.",
    ...types.flat(),
  ]
    .filter((block) => block !== "")
    .join("\n\n")
    .concat("\n")
}

/** Returns an operation's errors, such as "404 `session.unknown`". */
function errorsOf({ responses }: Operation): string[] {
  return Object.entries(responses).flatMap(([status, { description }]) =>
    [...description.matchAll(/`[^`]+`/g)].flatMap(([code]) =>
      /^[45]/.test(status) ? `${status} ${code}` : [],
    ),
  )
}

function errorsText(errors: readonly string[]): string {
  return errors.length === 0 ? "" : `Errors: ${errors.join(", ")}`
}

function describe(schema: ShownSchema): string[] {
  const alternatives = schema.oneOf ?? schema.anyOf
  if (alternatives) {
    const fields = alternativeFields(schema).map(
      ({ name, description }) => `| \`${name}\` | ${description} |`,
    )
    return [
      "One of:",
      alternatives.map((each) => `- \`${typeText(each)}\``).join("\n"),
      fields.length === 0 ? "" : ["| name | |", "|---|---|", ...fields].join("\n"),
    ]
  }
  return schema.properties ? [fieldsOf(schema)] : [`\`${typeText(schema)}\``]
}

function fieldsOf({ properties = {}, required = [] }: ShownSchema): string {
  return table(
    Object.entries(properties).map(([name, inner]) =>
      field(name, required.includes(name), typeText(inner), inner.description),
    ),
  )
}

function field(name: string, isRequired: boolean, type: string, description = ""): string {
  return `| \`${name}${isRequired ? "" : "?"}\` | \`${type.replaceAll("|", "\\|")}\` | ${description} |`
}

function table(rows: readonly string[]): string {
  return rows.length === 0 ? "" : ["| name | type | |", "|---|---|---|", ...rows].join("\n")
}

function sentence(text = ""): string {
  return text.endsWith(".") ? text : `${text}.`
}
