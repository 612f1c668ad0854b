/** Number of bytes at the start of a page in which it can declare its encoding. Browsers use the same limit. */
const metaBytes = 1024

/**
 * Decodes a body. The byte order mark, the `content-type` header or the page determines the encoding, in this order of
 * precedence. The default is UTF-8. Replaces invalid bytes with U+FFFD.
 */
export function pageText(body: Buffer, contentType: string): string {
  const label = markOf(body) ?? parameter(contentType) ?? metaOf(body) ?? "utf-8"
  return decode(body, label)
}

function markOf(body: Buffer): string | undefined {
  if (body.length >= 3 && body.readUIntBE(0, 3) === 0xefbbbf) return "utf-8"
  if (body.length < 2) return undefined
  const mark = body.readUInt16BE(0)
  return mark === 0xfeff ? "utf-16be" : mark === 0xfffe ? "utf-16le" : undefined
}

function parameter(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType)?.[1]
}

/**
 * Returns the encoding that the page declares: `<meta charset="…">`, `<meta … content="text/html; charset=…">` or
 * `<?xml … encoding="…"?>`.
 */
function metaOf(body: Buffer): string | undefined {
  const start = body.subarray(0, metaBytes).toString("latin1")
  const found = /<meta[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)/i.exec(start)?.[1]
  // The declaration is readable as ASCII, so the page is not UTF-16.
  if (found !== undefined) return /^utf-16/i.test(found) ? "utf-8" : found
  return /^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w:.-]+)/i.exec(start)?.[1]
}

function decode(body: Buffer, label: string): string {
  try {
    return new TextDecoder(label).decode(body)
  } catch {
    // The encoding is unknown.
    return new TextDecoder().decode(body)
  }
}
