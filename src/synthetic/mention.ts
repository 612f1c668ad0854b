/**
 * Kind of the text before a call. `intent`: the text announces that the model makes the call now. `mention`: the text
 * describes the call. `neutral`: all other text.
 */
export type LeadIn = "intent" | "neutral" | "mention"

/** The text before a call. */
interface TextBefore {
  /** The text before the call on its line. If the call begins the line, the nearest earlier line that is not empty. */
  text: string
  /** True if the call begins its line. */
  ownLine: boolean
}

/**
 * Classifies the text before a call. A mention is an example, a quotation, a warning, or a part of a sentence. If the
 * text ends with a colon or in the middle of a sentence, the text must announce an action of the model ("Let me
 * check:"). Otherwise, the call is part of what the text describes ("The file contains:").
 */
export function classifyLeadIn({ text, ownLine }: TextBefore): LeadIn {
  const line = withoutMarkup(text)
  if (ownLine && (line === "" || block.test(text))) return "neutral"
  if (line === "") return /[>\]]$|^\s*(?:[-*+•]|\d+[.)])\s*$/.test(text) ? "neutral" : "mention"
  const sentences = line.split(sentenceEnd)
  const sentence = sentences.at(-1) ?? ""
  const clause = sentence.split(clauseEnd).findLast((piece) => /[\p{L}\p{N}]/u.test(piece)) ?? sentence
  const finished = /[.!?…。！？](["'”’»)\]]*)$/u.test(sentence)
  if (/(^|[\s:=(])["'“‘«‹„「『]+$/u.test(line)) return "mention"
  if (question.test(sentence) || (!finished && deferred.test(sentence))) return "mention"
  const isOrder = order.test(sentence) && sentence.split(/\s+/).length <= 4
  if (announcesCall(isOrder ? sentence : clause))
    return example.test(sentence) && !inquiry.test(clause) ? "mention" : "intent"
  if (example.test(sentences.slice(-2).join(" "))) return "mention"
  if (/[?？]["'”’»)\]]*$/u.test(sentence) && !openQuestion.test(sentence)) return "mention"
  if (finished) return warning.test(sentence) ? "mention" : "neutral"
  if (/[:：]$/u.test(sentence)) return /\b(but|instead|rather)[:：]$/iu.test(sentence) ? "intent" : "mention"
  if (
    !ownLine ||
    !remark.test(sentence) ||
    [negative, citing, title, openEnd].some((pattern) => pattern.test(sentence))
  )
    return "mention"
  return "neutral"
}

/** Returns true if the clause says that the model makes a call now. */
function announcesCall(clause: string): boolean {
  for (const [index, pattern] of announcements.entries()) {
    const found = pattern.exec(clause)
    // In English, a denial precedes the verb. In other languages, it can come at the end.
    const end = found === null || index > 1 ? clause.length : found.index + found[0].length + 8
    if (found && !negative.test(clause.slice(0, end))) return true
  }
  if (citing.test(clause) || negative.test(clause) || clause.split(/\s+/).length > 10) return false
  return (
    bareAction.some((pattern) => pattern.test(clause)) ||
    (order.test(clause) && !content.test(clause) && clause.split(/\s+/).length <= 4)
  )
}

/**
 * Returns true if the text after a call shows that the call is only mentioned: the text continues the sentence that
 * contains the call, or says that the call is an example. The text begins directly after the call and contains the rest
 * of the line, or the first sentence of a later line. `announced` is true if the text before the call is an `intent`.
 * `ownLine` is true if the call begins its line.
 */
export function disownsCall(
  after: string,
  { announced, ownLine }: { announced: boolean; ownLine: boolean },
): boolean {
  const sameLine = !/^[ \t]*\r?(\n|$)/.test(after)
  const text = after.trim()
  if (sameLine && !/^\p{Lu}|^[\p{Emoji_Presentation}*#]/u.test(text)) return true
  if (sameLine && !ownLine && !announced) return true
  return disclaimer.test(withoutMarkup(text))
}

/** The last line of a complete block: a quotation, a table, a comment, an element, or a fence. */
const block = /^\s*[>|].*[^:：]$|(?:-->|<\/[\w:-]+>|^\s*(?:`{3,}|~{3,}))\s*$/u

/** Removes Markdown markers, and markers of chat templates and thinking blocks, from both ends of the text. */
function withoutMarkup(text: string): string {
  return text
    .replace(
      /^[\s\S]*(?:<\/(?:think|thinking|reasoning|seed:think)>|\[\/THINK\]|<[|｜][^<>|｜]*[|｜]>)/iu,
      "",
    )
    .replace(
      /^\s*(?:(?:[-*+•]|#+|\(?\d+[.)])\s+|<\/?(?:answer|response|reply|actions?|assistant|think|thinking|reasoning|seed:think)>\s*)+/iu,
      "",
    )
    .replace(/^[\s#*_~\p{Extended_Pictographic}]+\uFE0F?\s*|(?<=[^\s])[\s*_~]+$/gu, "")
    .trim()
}

const sentenceEnd =
  /(?<!\b(?:e\.g|i\.e|z\.\s?B|p\.\s?ex|vs|etc|ca|bzw|\d))(?:[.!?…]+["'”’»)\]]*\s+|(?<=[。！？])\s*(?=.))/iu
const clauseEnd =
  /[,;，；、]\s*|[:：]\s+|\s[—–-]\s|\b(?:so|but|and (?=i\b|let\b|we\b)|aber|donc|mais|pero|entonces|mas|então|ma|quindi|maar|dus)\b\s*(?=\S)/iu

/** Verbs that announce the use of tools, as stems with spelling variants. */
const verbs =
  "add|analy[sz]|apply|ask|begin|build|call|chang|check|compil|debug|dig|implement|investigat|prepar|refactor|restart|retry|compar|confirm|continu|count|creat|delet|do|edit|examin|execut|explor|fetch|find|fix|gather|get|go|grep|inspect|install|invok|list|load|locat|look|mak|mov|open|perform|proceed|pull|quer|read|remov|renam|replac|request|retriev|review|runn?|scan|search|see|start|tak|test|tri|try|updat|us|verif|view|writ"

const announcements: readonly RegExp[] = [
  /(?<!\b(?:before|if|when|unless|until|whenever|what|how|why|where|that|which|than) )\b(?:let me(?! know)|let['’]?s|let us|i['’]?ll|i will|i['’]?m going to|i am going to|we['’]?ll|we will|i (?:\w+ )?need(?! (?:this|that|these|such))|i (?:\w+ )?(?:have|want) to|i (?:\w+ )?must|i should|i['’]d like to|(?:i|we) (?:can )?now|allow me|gonna|i['’]m (?:now )?\w+ing|i am (?:now )?\w+ing|we need to|here(?:['’]s| is| are) (?:my|the) (?:tool |function )?calls?(?= to |[:：]?$))(?!\p{L})/iu,
  new RegExp(
    `(?<!\\b(?:before|if|when|unless|until|whenever|what|how|why|where|that|which|than) )\\b(?:i|we) (?:(?:now|first|then|also|just|next|again) )*(?:${verbs})(?:e|y)?\\b`,
    "iu",
  ),
  // German, Dutch
  /\b(?:ich|ik) (?:\p{L}+ )?(?:lese|werde|schaue|prüfe|überprüfe|suche|öffne|rufe|sehe|führe|starte|lasse|liste|muss|möchte|will|hole|mache|beginne|erstelle|ändere|schreibe|bearbeite|untersuche|zeige|zal|ga|lees|kijk|zoek|open|voer|moet|wil|controleer|bekijk)(?!\p{L})|\b(?:lese|schaue|prüfe|suche|öffne|rufe|führe|sehe|muss|werde|liste|hole|starte|lees|kijk|zoek|open|ga|zal|bekijk|controleer|voer) (?:ich|ik)\b|\blass(?:en|t)? (?:sie )?(?:mich|uns)\b|\blaat (?:me|mij|ik)\b|\blaten we\b/iu,
  // French
  /\bje (?:l[ea]s? )?(?:vais|lis|regarde|vérifie|cherche|lance|dois|commence|consulte|liste|veux|crée|modifie|recherche)(?!\p{L})|\bj['’](?:ouvre|exécute|appelle|examine|utilise|affiche|inspecte)|\blaisse[zr]?[- ]moi\b|\bpermettez[- ]moi\b|\b(?:voyons|regardons|vérifions|lisons|commençons|cherchons|examinons)\b/iu,
  // Spanish, Portuguese, Italian
  /\b(?:voy a|vamos a|vamos|dé?jame|déjeme|permíteme|leo|busco|reviso|necesito|tengo que|abro|compruebo|ejecuto|miro|consulto|vou|deixe-me|deixa-me|deixe eu|preciso|leio|procuro|verifico|abro|sto (?:per|\p{L}+ndo)|devo|leggo|controllo|cerco|apro|eseguo|guardo|vediamo|fammi|lasciami|proviamo)(?!\p{L})/iu,
  // Russian, Polish, Turkish
  /(?<!\p{L})(?:давай(?:те)?|(?:мне|нам) (?:нужно|надо)|(?:про)?читаю|прочитаю|прочту|посмотр(?:ю|им)|смотрю|проверю|проверяю|открою|открываю|запущу|запускаю|найду|поищу|ищу|просмотрю|przeczytam|czytam|sprawdzę|sprawdzam|zobaczę|otworzę|uruchomię|poszukam|pozwól|okuyacağım|okuyorum|bakayım|bakıyorum|çalıştıracağım|kontrol ed\p{L}+)(?!\p{L})/iu,
  // Chinese, Japanese, Korean
  /(?:现在|首先|接下来|先)(?:来|就|先|再|要)?(?:查看|读取|运行|搜索|检查|打开|列出|执行|测试|读|查|找|看)|让我|讓我|我(?:们|們)?(?:来|來|先|将|將|会|會|要|现在|現在|去|需要|想|再|得|马上)|(?:読み|読んでみ|確認し|見てみ|見|調べ|実行し|検索し|開き|取得し|探し)(?:ます|ましょう)|겠습니다|(?:볼|할|을|를)게요|읽을게요/u,
]

/** Announcements without a subject, such as "Reading the file:" and "Read the file:". */
const bareAction: readonly RegExp[] = [
  /^(?:\w+ly )?(?!quot|contain|includ|accord|follow|regard|concern|mean|say|show|cit|repeat|assum|imagin|suppos|consider|warn|beg|end|noth|anyth|someth|everyth|head|train|exist|miss|remain|interest|result|correspond|match|word|dur|be|hav|us|writ|send|str|depend|explain|describ|illustrat)\p{L}{2,}ing (?:the|my|all|into|in|for|through|up)\b/iu,
  /^time to (?!quote|show|explain|describe)\p{L}+|^(?:quick|final|last|next) check\b/iu,
  new RegExp(
    `^(?:(?:now|next|first|then|ok(?:ay)?|sure|also|and) )*(?:\\w+ly )?(?:${verbs}|re-?read)(?:t|n)?ing\\b`,
    "iu",
  ),
  /^(?:please )?(?:read|look|check|list(?! of)|search(?! results?)|open|find|inspect|examine|fetch|view|verify|explore|scan|locate|get|create|edit|update|fix|run (?=[a-z]))(?!\p{L})(?!.*\b(?:this|that|these|those|following|below|above|here|with)\b)/iu,
]

/** Words that place a call in a sequence, such as "Next:". */
const order =
  /^(?:and |so )*(?:now|next|first(?:ly)?|second(?:ly)?|third|then|finally|again|once more|one (?:more|last)|final|retry|step \d+|lastly|ok(?:ay)?|sure|all ?right|right|great|got it|understood|certainly|of course|here (?:we|i) go|here goes|on it|action|(?:the |my )?(?:tool|function) calls?|my (?:next )?(?:call|action|step)|thought|zuerst|jetzt|nun|dann|als nächstes|d'abord|maintenant|ensuite|primero|ahora|primeiro|agora|prima|ora|adesso|сначала|сейчас|теперь|まず|次に|먼저|이제)(?!\p{L})/iu

/** Verbs that describe content instead of announcing a call. */
const citing =
  /\b(?:contain(?:s|ed|ing)?|says?|saying|said|writes|emits|sends|answers|calls|asks|produces|prints|makes|show(?:s|ed|n|ing)|reads|reading (?:as|like)|holds?|held|ha[sd]|have|is|are|was|were|reports?|reported|return(?:s|ed)?|print(?:s|ed)?|logged|wrote|written|answer(?:s|ed)?|repl(?:y|ies|ied)|sent|sends|gives?|gave|got|received|found|saw|looks|includ(?:es|ed)|lists|mention(?:s|ed)|states?|stated|quot(?:e|es|ed)|follow(?:s|ed|ing)|below|comes?|came|steht|enthält|lautet|sagt|zeigt|contient|dit|montre|affiche|contiene|dice|muestra|contém|diz|mostra|содержит|говорит|написано)(?!\p{L})|包含|内容|显示|写|含|書|です|あります|있습니다|내용/iu

/** Nouns for content. */
const content =
  /\b(?:text|lines?|outputs?|results?|messages?|entr(?:y|ies)|paragraphs?|logs?|docs|documentation|manual|readme|contents?|transcripts?|history|excerpts?|snippets?)\b/iu

/** A question to the user. */
const question =
  /^(?:should|shall|may|can|could|do|does|did|would|is|are|was|were|soll|darf|dois|puis)[- ](?:i|we|you|it|this|that|the|he|she|they|ich|wir|je)\b/iu

/** Words that postpone a call. */
const deferred =
  /\b(?:let me know|tell me|(?:wait|ask) for|(?<!\b(?:check|see|verify|test|out|look|know|confirm) )(?:once|when|if|unless|until|as soon as) (?:you|it|that|this|they)|after you|tomorrow|later|eventually|(?:with|without|for) your|in (?:the )?future|next time|before (?:running|executing|calling))\b/iu

/** A question that the model asks itself, and not the user. */
const openQuestion =
  /^\p{L}+[?？]$|^(?:but |so |and |hmm,? )?(?:why|what|where|which|how|who|when)\b(?!.*\b(?:this|that|these|you)\b)/iu

/** An announcement of a search. */
const inquiry =
  /\b(?:let me|let['’]?s|i['’]?ll|i will|i need to|i should|i want to) (?:\w+ )?(?:check|see|find|look|verify|read|search|inspect|open)\b/iu

/** A short remark without punctuation, such as "Sure" or "One moment". */
const remark = /^(?:[\p{L}'’]+\s*){1,4}[^\p{L}\p{N}]*$/u

/** A heading that describes what follows. */
const title =
  /^(?:the|this|that|an?|my|your|his|her|its|der|die|das|le|la|les|el|los|il|o)\b|^(?:[\w ]+ )?(?:usage|syntax|format|quotation|quote|sample|demo|reference|definition|examples?)$/iu

/** A last word after which the sentence continues on the next line. */
const openEnd =
  /\b(?:of|to|as|with|for|like|than|or|by|from|in|on|at|the|an?|be|accept|write|use|call|send|type|emit|output|expect|run|execute|if|when|that|von|mit|als|wie|de|du|des|como|con|di|da|che|que|qui|comme)$/iu

/** Words that announce an example, in the languages that models write most. */
const example =
  /\b(?:for example|for instance|(?:an?|one|another|the|some|following|first|second|next|last) (?:\w+ ){0,2}examples?(?! (?:file|dir|folder|code|project|test|config|script|app|module|class|function|package)|[./\w-])|examples?(?=[ :]*$| of| calls?| tool| usage| output)|sample (?:tool )?calls?|such as|as follows|like (?:this|so|that|these|the following)|(?:looks?|appears?|reads) (?:like|as|so)|syntax|(?:the|this|following|right|correct|wrong) (?:call )?format|hypothetical(?:ly)?|in theory|pretend|imagine|suppose|illustrat\p{L}*|demonstrat\p{L}*|to (?:quote|cite)|(?:quote|cite|repeat|recite|echo|paraphrase|reproduce|copy|paste|explain|describe)(?:[ :]|$)|show you|(?:i|you|one|they|we|it|he|she|people|models?|users?|someone)(?:['’]d| would) (?:\w+ ){0,2}(?:write|say|send|use|call|run|type|emit|answer|have|look|be|read|do|execute|invoke)|would (?:be|look|have been|write|say|send|call|run|read)|(?:you|one|they|people|models?|users?|someone) (?:could|should|can|might|may|must) (?:\w+ )?(?:write|say|send|use|call|run|type|emit|try|execute|invoke|do|read)|i could (?:have )?(?:\w+ )?(?:called|written|write|say|sent|used|run)|zum beispiel|beispiel(?:sweise|haft)?|sieht so aus|so aussehen|etwa so|wie folgt|folgender?maßen|(?:könnte|könntest|würde|würdest|hätte|könnten|würden) |par exemple|exemples?(?!\p{L})|comme (?:ceci|suit|ça)|(?:pourrai[st]|pourriez|devrai[st]|serai[st]) |por ejemplo|ejemplos?|así se|de esta (?:forma|manera)|podrías?|(?:sería|debería) |por exemplo|exemplos?|assim se|da seguinte forma|poderia|(?:seria|deveria) |(?:per|ad|un) esempio|in questo modo|così si|potre\p{L}+|bijvoorbeeld|voorbeeld|zou(?:den)? |als volgt|na przykład|przykład(?:owo)?|mógłby\p{L}*|örne(?:k|ğin))|(?<!\p{L})e\.g\.|\bz\.\s?B\.|\bp\.\s?ex\.|(?<!\p{L})(?:например|пример|вот так|так выглядит|следующим образом|мог(?:ла|ли)? бы|можно|можете)(?!\p{L})|例|比如|譬如|这样|這樣|如下|格式|语法|像|のように|ような|たとえば|形式|構文|예를|예시|처럼|형식|다음과 같|이렇게/iu

/** Words that forbid or deny. */
const negative =
  /\b(?:not|never|cannot|avoid|without|refuse|decline|forbidden|dangerous|harmful|malicious|wrong|incorrect|bad|nicht|nie|niemals|kein\p{L}*|vermeide\p{L}*|ne|n['’]\p{L}+|jamais|pas|no|nunca|jamás|evit\p{L}+|não|nao|non|mai|niet|nooit|geen|nie|nigdy)(?!\p{L})|n['’]t\b|(?<!\p{L})(?:не|никогда|нельзя)(?!\p{L})|不|别|別|勿|禁止|ないで|ません|しない|決して|絶対|마세요|않|금지|절대/iu

/** A complete sentence that forbids or denies the call after it. */
const warning =
  /^(?:\p{L}+, |please |but |and |warning: |danger: |note: )*(?:never|don['’]t|do not|avoid|nie(?:mals)?|ne |nunca|jamais|no |não|non |никогда|не |不要|请勿|切勿|绝不)(?=.*(?:\b(?:this|that|it|these|such|following|like|so|das|dies\p{L}*|folgende\p{L}*|ça|ceci|cela|esto|isso|questo)(?!\p{L})|это|此|这|それ|これ))|\b(?:i|we)(?: would| will| must| should|['’]d|['’]ll)? (?:won['’]t|not|never|cannot|can['’]t|did ?n[o'’]t) (?:run|execute|call|obey|follow|make|send|do) (?:this|that|it|the following|these|such)\b|\b(?:do not|don['’]t|never) (?:run|execute|call|use)[.!]*$|(?<!\p{L})(?:nicht|ne pas|no|não|non|не) (?:ausführen|exécuter|ejecutar|executar|eseguire|запускать|выполнять)(?!\p{L})/iu

/** Sentences after a call that say that the model does not want to make the call. */
const disclaimer =
  /^(?:[—–-] ?|but |and |so |however,? |note that |again,? )*(?:(?:this|that|it|these|those|which|the (?:above|call|text|line|block|snippet|example)(?: above)?|above|such a call|such calls)(?: call| one| text| block| snippet| line)?(?:['’]s|['’]d| (?:is|was|are|were|would|could|might|must|should|shows?|means|looks?|comes?|came|appears?|will)) .*?(?:example|sample|syntax|format|\bhow\b|looks? like|what (?:a|an|the|it|you|one|they|i) |not (?:to )?(?:be )?(?:run|executed|called|meant|real|allowed|safe)|never|would (?:delete|remove|read|run|list|be|write|destroy|erase|print|show|call)|dangerous|harmful|malicious|forbidden|wrong|incorrect|quot|(?:in|from) the (?:file|log|docs?|readme|page|result|output|manual|issue|ticket|message|test|history|text)|(?:is|was) (?:the )?(?:text|content|line|call|command) (?:of|in|from|that))|(?:please )?(?:do not|don['’]t|never) (?:\w+ )?(?:run|execute|call|use|do|send|try|make|copy|write)|i (?:did ?n[o'’]t|have not|haven['’]t|will not|won['’]t|would not|wouldn['’]t|am not|do not|don['’]t) (?:\w+ )?(?:run|execute|executed|running|executing|call|called|obey|follow|do (?:this|that|it)|make)|(?:would|could|might) (?:delete|remove|destroy|erase|print|read|list)|(?:das|dies|so) (?:ist|war|wäre|würde|sieht) .*(?:beispiel|aus|lösch|nicht)|(?:c['’]est|ceci est|ce serait) .*exemple|(?:esto|eso|este|ese) (?:es|sería|era) .*(?:ejemplo|así)|(?:isto|isso|este|esse) (?:é|seria) .*exemplo|(?:questo|quello) (?:è|sarebbe) .*esempio|это (?:лишь |только |просто )?пример|(?:这|那|以上)(?:只|就|仅)?是.*(?:例|格式|示范)|これは.*例|이것은 .*예)/iu
