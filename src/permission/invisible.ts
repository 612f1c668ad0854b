/**
 * True if the text holds characters that do not show, or that change how their neighbours show: direction marks, tags,
 * characters of no width, control characters. What a person reads is then not what will run.
 */
export function invisibleCharacters(text: string): boolean {
  return /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u.test(text)
}
