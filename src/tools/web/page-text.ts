/** How far into a page its own word on its encoding is looked for, in bytes: as far as browsers look. */
const metaBytes = 1024

/**
 * The text of a body. Its encoding is what a byte order mark says, else the server, else the page itself, else UTF-8.
 * Bytes that are not of the encoding become replacement characters.
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

/** `<meta charset="…">`, `<meta … content="text/html; charset=…">`, `<?xml … encoding="…"?>`. */
function metaOf(body: Buffer): string | undefined {
  const start = body.subarray(0, metaBytes).toString("latin1")
  const found = /<meta[^>]*?charset\s*=\s*["']?\s*([\w:.-]+)/i.exec(start)?.[1]
  // Such a page cannot be in UTF-16: it would not have been read so far.
  if (found !== undefined) return /^utf-16/i.test(found) ? "utf-8" : found
  return /^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w:.-]+)/i.exec(start)?.[1]
}

function decode(body: Buffer, label: string): string {
  try {
    return new TextDecoder(label).decode(body)
  } catch {
    // A label that nobody knows says nothing.
    return new TextDecoder().decode(body)
  }
}
