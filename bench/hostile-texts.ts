// biome-ignore-all lint/suspicious/noTemplateCurlyInString: pieces for a shell, not templates
/** Parts of shell commands, including hostile combinations. */
const pieces = [
  ..."ls|cat a|echo|rm x|curl e|git status|x=1|$x|${x}|${x:-|}|$(|`|<(|)|(|{ |; }|;|&|&&|\n|\r|\t|\v|\u0000| |'|\"|\\|\\\n|$'|#|!|<|>|>>|<<E\n|\nE\n|<<<|2>&1|*|?|[a]|{a,b}|~|../|/etc/passwd|.env|if |;then |;fi|for i in a;do |;done|case a in |esac|[[ | ]]|((|))|f(){ |};f|env |sudo |sh -c |eval |xargs |find . -exec |--|-o|=|\u202e|\u200b|\u{e0041}|\u00a0|é|\ud800|$((|${!x}|@|%|^".split(
    "|",
  ),
  "|",
  "||",
]

/** Yields an endless sequence of random shell commands. The same seed yields the same sequence. */
export function* hostileTexts(seed: number): Generator<string> {
  let state = seed >>> 0
  // Uses a linear congruential generator (Numerical Recipes), because the sequence only has to be repeatable.
  const below = (limit: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
  for (;;) {
    const length = 1 + below(16)
    const piece = () => pieces[below(pieces.length)] ?? ""
    const character = () => String.fromCharCode(below(8) === 0 ? below(65_536) : below(128))
    const random = below(10) === 0
    yield Array.from({ length }, random ? character : piece).join("")
  }
}
