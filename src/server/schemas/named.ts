// Adds `openapi` to the schemas.
import "@hono/zod-openapi"
import * as z from "zod"

/** Schemas that appear in the OpenAPI document under their own name. */
const named = z.registry<{ id: string }>()

/** Key that marks references to named schemas until `withReferences` replaces them. */
const referenceKey = "x-named"

/**
 * Names a response schema. Returns a schema of the same type, which appears as a reference in the OpenAPI document. The
 * returned schema does not validate anything, because responses are not validated.
 */
export function name<S extends z.ZodType>(id: string, schema: S) {
  named.add(schema, { id })
  return z.custom<z.output<S>>().openapi({ type: "object", ...reference(id) })
}

/** Returns a reference to a named schema, for use in another schema in the document. */
export function reference(id: string): object {
  return { [referenceKey]: id }
}

/** Returns the named schemas as JSON Schema, by name. */
export function namedSchemas(): Record<string, object> {
  const uri = (id: string) => `#/components/schemas/${id}`
  const { schemas } = z.toJSONSchema(named, {
    uri,
    io: "output",
    unrepresentable: "any",
    // Later versions may add properties.
    override({ jsonSchema }) {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $id: _, $schema: __, ...schema }]) => [id, schema]),
  )
}

/** Replaces the marks of named schemas in a document with `$ref` references. */
export function withReferences(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withReferences)
  if (typeof value !== "object" || value === null) return value
  if (referenceKey in value) return { $ref: `#/components/schemas/${String(value[referenceKey])}` }
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withReferences(inner)]))
}

/** Returns an object schema whose fields have the given descriptions. */
export function described<S extends z.ZodObject>(
  schema: S,
  texts: { readonly [K in keyof S["shape"]]?: string },
): S {
  const fields = Object.entries(texts).map(([key, text]) => [key, schema.shape[key]?.describe(String(text))])
  // A description does not change the type of a field.
  return schema.extend(Object.fromEntries(fields)) as unknown as S
}

/** Returns true if the body changes at least one field. Use it with {@link noChange}. */
export function isChange(body: object): boolean {
  return Object.keys(body).length > 0
}

/** The error for a body that changes no field. */
export const noChange = { error: "set at least one field" }

/** Returns the schema for one page of a list. */
export function page<S extends z.ZodType>(item: S) {
  return z.object({
    items: z.array(item),
    next: z.string().optional().openapi({ description: "Cursor for the next page. Absent on the last page" }),
  })
}
