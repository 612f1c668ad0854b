import fc from "fast-check"
import { expect, test } from "vitest"
import { parseShell } from "../../../src/permission/shell/parse.ts"
import { readPlainScript } from "../../../src/permission/shell/plain-script.ts"

const words = [
  ...[
    "ls",
    "git",
    "./run",
    "../x/y",
    ".",
    "_a",
    "a-b",
    "time",
    "let",
    "test",
    "exec",
    "eval",
    "source",
    "in",
    "then",
  ],
  ...[
    "if",
    "for",
    "do",
    "case",
    "function",
    "export",
    "declare",
    "local",
    "unset",
    "coproc",
    "select",
    "esac",
    "fi",
  ],
  ...[
    "-la",
    "--key=value",
    "a=b",
    "A=b",
    "PATH=/x",
    "-1",
    "0",
    "007",
    "0x1f",
    "1.5",
    "-",
    "--",
    "+x",
    "a,b",
    "50%",
  ],
  ...[
    "a:b",
    ":",
    "=",
    "==",
    "/",
    "//",
    "-=",
    "%s",
    "1:2",
    "a.b/c",
    "...",
    "12a",
    "true",
    "umask",
    "alias",
    "while",
  ],
  ...[
    "elif",
    "else",
    "until",
    "done",
    "typeset",
    "readonly",
    "unsetenv",
    "return",
    "set",
    "trap",
    "command",
    "1-2",
  ],
]
const word = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...words) },
  {
    weight: 1,
    arbitrary: fc.string({ unit: fc.constantFrom(..."aZ09_./:=,%+-"), minLength: 1, maxLength: 6 }),
  },
)
const quoted = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(...'ab $`\\"#;|&()<>*?[]{}!~\t'),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
    ),
  })
  .map((text) => `'${text}'`)
const inString = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(..."ab '`\\$#;|&()<>*?[]{}!~\t"),
      fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }),
    ),
  })
  .map((text) => `"${text}"`)
const blanks = fc.constantFrom(" ", " ", " ", "  ", "")
const piece = fc.oneof(
  { weight: 6, arbitrary: word },
  { weight: 2, arbitrary: quoted },
  { weight: 2, arbitrary: inString },
  { weight: 2, arbitrary: fc.constantFrom(";", "&&", "||", "|", ";;", "&", "|&", "\n") },
)
const script = fc
  .array(fc.tuple(piece, blanks), { minLength: 1, maxLength: 10 })
  .map((pieces) => pieces.map(([text, blank]) => text + blank).join(""))

/** Scripts of which most are plain. */
const line = fc
  .array(
    fc.tuple(
      fc.array(fc.oneof(word, word, quoted, inString), { minLength: 1, maxLength: 4 }),
      fc.constantFrom("; ", " && ", " || ", " | ", ";"),
    ),
    {
      minLength: 1,
      maxLength: 5,
    },
  )
  .map((commands) => commands.map(([parts, joint], index) => (index ? joint : "") + parts.join(" ")).join(""))

test("the tree of a plain script is the parser's", async () => {
  let plain = 0
  await fc.assert(
    fc.asyncProperty(fc.oneof(script, line), async (text) => {
      const tree = readPlainScript(text)
      if (!tree) return
      plain += 1
      expect(tree, text).toEqual(await parseShell(text))
    }),
    { numRuns: 20_000 },
  )
  expect(plain).toBeGreaterThan(300)
})

test.each([
  "ls",
  "sleep 1; printf 'rested-%s\\n' 1",
  "npm run build && npm test || echo failed",
  "cat a.txt | sort | uniq -c",
  "git log --oneline -5",
  'git commit -m "Say it\'s done; (all of it) && more" -a',
])("reads %s", async (text) => {
  expect(readPlainScript(text)).toEqual(await parseShell(text))
})

test.each([
  ...[
    "",
    " ls",
    "ls ",
    "ls;",
    "; ls",
    "ls &",
    "ls > x",
    "echo $x",
    "echo `x`",
    'echo "$x"',
    'echo "`x`"',
    'echo "a\\"',
    'echo "a!"',
    'echo ""',
    'echo " a"',
    'echo "a\nb"',
    'echo "a"b',
    'echo "a',
    "a=b",
    "a=b ls",
    "ls *",
  ],
  ...[
    "ls ~",
    "if x",
    "x; then y",
    "export A",
    "a | b && c",
    "a && b | c",
    "ls # x",
    "echo 'a",
    "echo a'b'",
    "(ls)",
  ],
  ...["{ ls", "! ls", "ls\nls", "ls 'a\nb'", "ls \\a", "a@b", "ls [a]", "ls é", "-x", "1", "a && ; b"],
  `echo ${"x".repeat(5_000)}`,
])("leaves %j to the parser", (text) => {
  expect(readPlainScript(text)).toBeUndefined()
})
