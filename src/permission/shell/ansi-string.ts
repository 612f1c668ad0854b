/** The text of a string in `$'…'`. `fault`: why it is not understood, where it is not; the escape then stands as written. */
export function decodeAnsi(text: string): { text: string; fault?: string } {
  let fault: string | undefined
  const escapes = /\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))/gs
  const decoded = text.replaceAll(escapes, (whole, hex, short, long, octal, letter: string | undefined) => {
    if (letter !== undefined && Object.hasOwn(ansiEscapes, letter)) return ansiEscapes[letter] ?? whole
    const code =
      octal === undefined ? Number.parseInt(hex ?? short ?? long ?? "", 16) : Number.parseInt(octal, 8)
    // Bytes above 127 make characters only together with their neighbours, and a zero ends the string.
    const bytes = hex !== undefined || octal !== undefined
    if (!(code > 0 && code <= 0x10ffff) || (bytes && code > 127)) {
      fault ??= `the escape ${whole} is not understood`
      return whole
    }
    return String.fromCodePoint(code)
  })
  return fault === undefined ? { text: decoded } : { text: decoded, fault }
}

const ansiEscapes: Readonly<Record<string, string>> = {
  a: "\u0007",
  b: "\b",
  e: "\u001b",
  E: "\u001b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\\": "\\",
  "'": "'",
  '"': '"',
  "?": "?",
}
