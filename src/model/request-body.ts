/** A primitive value that `JSON.stringify` writes as it stands. */
type RawJson = object

/**
 * Makes the bodies of one model's requests cheap to write. The texts of the history go out with every request; here
 * each is turned into JSON once and kept while requests contain it. The JSON is ASCII (`\u2192` for an arrow): one
 * wider character anywhere makes the engine's string twice as large, and its writing and sending several times slower.
 */
export function createBodyWriter(): (body: Record<string, unknown>) => Record<string, unknown> {
  let kept = new Map<string, RawJson>()
  const schemas = new WeakMap<object, unknown>()

  /** A schema is the same object in each request, so it is walked once. */
  function withoutWide(schema: unknown): unknown {
    if (typeof schema !== "object" || schema === null) return schema
    const known = schemas.get(schema) ?? escapeWide(schema)
    schemas.set(schema, known)
    return known
  }

  return (body) => {
    const used = new Map<string, RawJson>()
    function written(text: unknown): unknown {
      if (typeof text !== "string" || text.length < worthKeeping) return text
      const json = kept.get(text) ?? asciiJson(text)
      used.set(text, json)
      return json
    }
    const lighter = {
      ...body,
      messages: mapList(body.messages, (message) => ({
        ...message,
        content: written(message.content),
        ...(message.tool_calls ? { tool_calls: mapList(message.tool_calls, withArguments) } : {}),
      })),
      ...(body.tools ? { tools: mapList(body.tools, withTexts) } : {}),
    }
    kept = used
    return lighter

    function withArguments(call: Fields): Fields {
      const named = call.function as Fields
      return { ...call, function: { ...named, arguments: written(named.arguments) } }
    }
    function withTexts(tool: Fields): Fields {
      const named = tool.function as Fields
      const { description, parameters } = named
      return {
        ...tool,
        function: { ...named, description: written(description), parameters: withoutWide(parameters) },
      }
    }
  }
}

type Fields = Record<string, unknown>

/** In characters: below this a text is written faster than it is looked up. */
const worthKeeping = 64

function mapList(list: unknown, change: (item: Fields) => Fields): unknown {
  return Array.isArray(list) ? list.map(change) : list
}

/** The same value, with JSON in place of its texts that are not ASCII. */
function escapeWide(value: unknown): unknown {
  if (typeof value === "string") return wide.test(value) ? asciiJson(value) : value
  if (Array.isArray(value)) return value.map(escapeWide)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, escapeWide(inner)]))
}

const wide = /[\u007f-\uffff]/

function asciiJson(text: string): RawJson {
  const json = JSON.stringify(text).replaceAll(
    new RegExp(wide, "g"),
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
  // What came of a wide string is still kept wide; the way through bytes makes it narrow.
  const narrow = Buffer.from(json, "latin1").toString("latin1")
  return (JSON as unknown as { rawJSON(json: string): RawJson }).rawJSON(narrow)
}
