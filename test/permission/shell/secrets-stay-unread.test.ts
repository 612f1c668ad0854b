import { spawnSync } from "node:child_process"
import { existsSync, lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../runs.ts"
import { harness, policyOf, scopeOf, temporaryDirectory } from "../support.ts"

const secret = "ThisIsTheSecret"

/** Creates a project in which many names lead to a secret. */
function project(): string {
  const worktree = temporaryDirectory()
  const links = ["src/link.ts", "odd/x.md"]
  for (const folder of ["src", "odd", "a .env", "src/-n", "none"]) mkdirSync(join(worktree, folder))
  for (const file of [
    "README.md",
    "src/a.ts",
    "src/b.ts",
    "odd/a .env b.ts",
    "odd/-r",
    "odd/*.md",
    "list.txt",
  ])
    writeFileSync(join(worktree, file), `.env\n${file}\n`)
  for (const file of [".env", "src/.env", "odd/.env.local"])
    writeFileSync(join(worktree, file), `${secret}\n`)
  for (const link of links) symlinkSync("../.env", join(worktree, link))
  const identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
  for (const command of [
    ["init", "-q"],
    ["add", "README.md", "src/a.ts"],
    [...identity, "commit", "-qm", "x"],
  ])
    spawnSync("git", command, { cwd: worktree })
  return worktree
}

/** Returns the files of a project with their sizes. */
function filesIn(worktree: string): string[] {
  const names = readdirSync(worktree, { recursive: true, encoding: "utf8" }).filter(
    (name) => !name.startsWith(".git/"),
  )
  return names.map((name) => `${name} ${lstatSync(join(worktree, name)).size}`).sort()
}

const one = (...texts: string[]) => fc.constantFrom(...texts)
const all = (...parts: fc.Arbitrary<string>[]) => fc.tuple(...parts).map((texts) => texts.join(""))

const values = fc
  .array(
    one(
      ...[
        "README.md",
        ".env",
        "src/*.ts",
        "src/*",
        "odd/*",
        "*/a*",
        "odd/*.md",
        "'.e*'",
        "'a .env'",
        '"src/b.ts"',
      ],
      ...[
        "=cat",
        "~",
        "{a,.env}",
        "$HOME",
        ".en",
        "src",
        "-r",
        "{1..3}",
        "$(seq 2)",
        "$(cat list.txt)",
        "''",
      ],
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((words) => words.join(" "))

const variable = one(
  '"$f"',
  "$f",
  `"\${f}"`,
  `\${f}v`,
  '"$f[1,4]"',
  '"$f:h"',
  "$f/*",
  "./$f",
  '"$f"/.env',
  "$f.env",
)
const reader = one(
  "cat",
  "head -3",
  "grep -rn This",
  "wc -c",
  "sed -n 1,3p",
  "sort",
  "tail -n +1",
  "grep -h .",
  "ls",
)
const change = one(
  "",
  "",
  "",
  "f=.env; ",
  "read -r f < list.txt; ",
  "read f <<< .env; ",
  "printf -v f .env; ",
  "cd src; ",
)
const loop = all(
  one("for f in "),
  values,
  one("; do "),
  change,
  reader,
  one(" "),
  variable,
  one("; done", " | cat; done"),
)

const test_ = one(
  "-name '*.ts'",
  "-name '*'",
  "! -name '*.env'",
  "-iname '.ENV'",
  "-type f",
  "-name '?env'",
  "-true",
  "-name 'a*'",
)
const source = fc.oneof(
  all(
    one("find ", "find -L "),
    one(".", "src", "odd", "README.md", "src odd", "none"),
    one(" "),
    test_,
    one(" ", " -o ", " -not "),
    test_,
    one("", " -print", " -print0", " -printf '.env\\n'", " -prune -o -print"),
  ),
  all(
    one("grep -rl ", "grep -l ", "grep -rn ", "rg -l ", "rg --files "),
    one("md ", "a "),
    one("src", "odd", "README.md", "."),
  ),
  one("echo .env", "cat list.txt", "ls -a", "git ls-files"),
)
const filter = one(
  "",
  "",
  " | sort",
  " | head -2",
  " | grep -v md",
  " | grep -o '.env'",
  " | sed s/ts/env/",
  " 2>&1",
)
const taker = all(
  one("xargs ", "xargs -0 ", "xargs -n1 ", "xargs -I{} ", "xargs -d '\\n' "),
  reader,
  one("", " {}", " x{}", " .env", " <<< .env", " < list.txt", " 2>/dev/null"),
)
const pipeline = all(source, filter, one(" | ", " |& "), taker)

const payload = "'path[$(cat .env >&2)]'"
const script = one(
  ...[
    "'{print}'",
    '\'/[^]/,"]/{print > "y"}\'',
    "'BEGIN{while((getline l < \".env\")>0) print l}'",
    "1",
    "'NR<3'",
  ],
  ...["'/[[:alpha:]/,\"]/{print > FILENAME}'", "'{print > \"y\"}'", "'{f=\".env\"; getline < f; print}'"],
  ...[
    "p",
    "'1,3p'",
    "'r .env'",
    "'/[/p;s,]/&/w y,,'",
    "'s/[/x/;s,]/&/w y,,'",
    "'s/.*/cat .env/e'",
    "'$!d'",
    "'1{p;r .env'",
  ],
)
const file = one(
  ...[
    "README.md",
    ".env",
    "'.env'",
    '".e""nv"',
    ".e\\nv",
    "$'.en\\x76'",
    '"$PWD"/.env',
    "./.env",
    "src/../.env",
  ],
  ...[
    "src/a.ts",
    "src/link.ts",
    "{a,.env}",
    "{README.md,src/a.ts}",
    ".e{nv,x}",
    ".en*",
    "src/*.ts",
    "*",
    "list.txt",
  ],
  ...[
    "<(cat .env)",
    "<(cat README.md)",
    "- < .env",
    "< README.md",
    "<<< .env",
    "x=1",
    "~",
    '"$HOME"/.env',
    "@(.env)",
  ],
  ...[
    "$(echo .env)",
    "`echo .env`",
    '"$f"',
    "$1",
    '"$@"',
    "$_",
    payload,
    "$((1))",
    "$?",
    ".env~",
    "=.env",
    "f=.env",
  ],
)
const plain = all(
  one(
    ...[
      "cat",
      "head -3",
      "grep -rn This",
      "grep -h .",
      "sort",
      "cut -c1-",
      "nl",
      "tac",
      "rev",
      "ls",
      "echo",
      "test -f",
    ],
  ),
  one(" "),
  file,
)
const git = all(
  one(
    ...[
      "git log -p",
      "git show",
      "git diff",
      "git grep -n This",
      "git diff --no-index",
      "git blame",
      "git ls-files",
    ],
  ),
  one(" ", " -- ", " HEAD:", " HEAD -- ", " --cached "),
  file,
)
const scripted = all(
  one("awk ", "sed -n ", "sed ", "sed -E ", "awk -F: ", "awk -v x=.env "),
  script,
  one(" "),
  file,
)
const numbers = all(
  one("exit ", "printf %d ", "echo $(($1)) ", "[ 1 -eq ", "[[ 1 -eq ", "x=README.md; test -t "),
  one("x", '"$x"', payload, "1", "$?", "$1"),
  one("", " ]", " ]]"),
)
const simple = fc.oneof(plain, git, scripted, numbers)
const before = one(
  ...[
    "",
    "",
    "",
    "x=.env; ",
    "cd src; ",
    "cd src && ",
    "x=.env ",
    "LANG=C ",
    `x=${payload}; `,
    "true; ",
    "! ",
    "f=.env; ",
  ],
)
const after = one(
  ...["", "", "", " | cat", " && ls", " || true", "; done", " 2>/dev/null", " &", " | head -3", " # .env"],
)
const wrapped = all(
  one(
    ...[
      "",
      "",
      "",
      "timeout 5 ",
      "env ",
      "nice ",
      "nohup ",
      "time ",
      "command ",
      "builtin ",
      "stdbuf -oL ",
      "timeout 5 env ",
    ],
  ),
  simple,
)
const inShell = all(
  one(...["bash -c ", "sh -c ", "timeout 5 bash -c ", "bash -euc ", "env sh -c "]),
  wrapped.map((text) => `'${text.replaceAll("'", "'\\''")}'`),
  one("", " x .env", ` x ${payload}`, " .env", " < .env"),
)
const block = all(
  one(
    ...[
      "while true; do ",
      "if true; then ",
      "for f in README.md; do for g in .env; do ",
      "(",
      "{ ",
      "case x in x) ",
      "for i in 1 2; do ",
    ],
  ),
  wrapped,
  one("; break; done", "; fi", "; done; done", ")", "; }", ";; esac", "; done"),
)
const document = all(
  one("cat <<E", "cat <<'E'", "grep . - <<E", "cat - .env <<E"),
  one("\n", "\n$(", "\n`"),
  wrapped,
  one("\nE\n", ")\nE\n", "`\nE\n"),
)
const anything = all(before, fc.oneof(wrapped, inShell, block, document), after)

test("allows no loop and no list of files that prints a secret, in any installed shell", {
  timeout: 120_000,
}, async () => {
  const worktree = project()
  const shells = ["/bin/bash", "/bin/dash", "/bin/zsh"].filter((shell) => existsSync(shell))
  const { permission } = harness()
  const environment = { PATH: process.env.PATH, HOME: worktree }
  const files = filesIn(worktree)
  let ran = 0
  // Few of the random texts are allowed.
  const numRuns = Math.max(runs(600), 200)
  await fc.assert(
    fc.asyncProperty(fc.oneof(loop, pipeline, anything), async (text) => {
      const { action } = await permission.check(
        { permission: "bash", patterns: [text] },
        scopeOf(policyOf({}), worktree),
      )
      if (action !== "allow") return
      for (const shell of shells) {
        // Ends loops in the background, which outlive the shell.
        const { output } = spawnSync(shell, ["-c", `ulimit -t 2\n${text}`], {
          cwd: worktree,
          env: environment,
          input: "",
          timeout: 5_000,
        })
        expect(output.join(""), shell).not.toContain(secret)
        expect(filesIn(worktree), shell).toEqual(files)
        ran += 1
      }
    }),
    { numRuns },
  )
  expect(ran).toBeGreaterThan(numRuns / 60)
})

test("asks about each command that prints a variable", async () => {
  const worktree = temporaryDirectory()
  const commands = [
    ...[
      "set",
      "(set)",
      "{ set; }",
      "set 2>/dev/null",
      "\\set",
      "set | grep -i secret",
      "cat <(set)",
      "bash -c set",
    ],
    ...["env", "printenv TOKEN", "declare -p", "declare -x", "typeset -p", "export -p", "export"],
    ...["echo $TOKEN", `echo "\${TOKEN:0:99}"`, 'printf %s "$TOKEN"', `echo \${TOKEN@Q}`, `echo \${TOKEN@A}`],
    ...[
      "cat <<< $TOKEN",
      `cat <<< "a\${TOKEN}"`,
      `sort <<< \${TOKEN:-x}`,
      "cat <<E\n$TOKEN\nE",
      "cat <<-E\n\t$TOKEN\nE",
    ],
    ...["{ cat; } <<< $TOKEN", "bash -c cat <<< $TOKEN", "cat <<< $TOKEN | cat", "cat < <(cat <<< $TOKEN)"],
    ...['for x in "$TOKEN"; do cat <<< $x; done', "while read x; do echo $x; done <<< $TOKEN"],
    ...["cat /proc/self/environ", "awk 'BEGIN { print ENVIRON[\"TOKEN\"] }'", "x=$TOKEN; echo $x"],
  ]
  const harmless = ["set -e; ls", "set +e", "cat <<< x", "cat <<'E'\n$TOKEN\nE", "cat <<E\n$HOME\nE"]
  const env = { PATH: process.env.PATH, TOKEN: secret }
  const { permission } = harness()
  for (const command of [...commands, ...harmless]) {
    const isHarmless = harmless.includes(command)
    const { stdout } = spawnSync("bash", ["-c", command], { cwd: worktree, encoding: "utf8", env })
    expect(stdout.includes(secret), command).toBe(!isHarmless)
    const request = { permission: "bash", patterns: [command] }
    const { action } = await permission.check(request, scopeOf(policyOf({}), worktree))
    expect(action, command).toBe(isHarmless ? "allow" : "ask")
  }
})
