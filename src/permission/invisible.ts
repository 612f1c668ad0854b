/**
 * True if the text holds characters that do not show, or that change how their neighbours show: direction marks, tags,
 * characters of no width, control characters. What a person reads is then not what will run.
 */
export function invisibleCharacters(text: string): boolean {
  return /[\p{Cf}\p{Co}\p{Cn}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/u.test(text)
}
