/** A script that only prints parts of its input: no function calls, pipes, redirections or strings made of commands. */
export const plainAwk = /^(?!.*(?:system|getline|close|@|\\\n))[^|>`]*$/s

const addresses = String.raw`(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\+?\d+|\$|/[^/\\\n]*/))?)?`

/** One `s` command without the flags `e` and `w`, or `p`, `d`, `q`, `=`: with addresses in front. */
export const plainSed = new RegExp(
  String.raw`^${addresses}(?:[pdq=]|s([/|#,:!@%])(?:(?!\1)[^\\\n]|\\[^\n])*\1(?:(?!\1)[^\\\n]|\\[^\n])*\1[gpiI\d]*)$`,
)
