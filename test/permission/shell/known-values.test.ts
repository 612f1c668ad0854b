import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { allow, temporaryDirectory, verdictOf } from "../support.ts"

/** Creates a project with a secret, a link to a system file, and a folder with an unusual file name. */
function project(): string {
  const worktree = temporaryDirectory()
  for (const folder of ["src", "odd", "links"]) mkdirSync(join(worktree, folder))
  for (const file of ["README.md", "p.json", "src/a.ts", "src/b.ts", "odd/a .env b.ts"])
    writeFileSync(join(worktree, file), "x\n")
  writeFileSync(join(worktree, ".env"), "KEY=1\n")
  symlinkSync("/etc/passwd", join(worktree, "links/users.txt"))
  return worktree
}

async function actionOf(command: string, rules = {}): Promise<string> {
  return (await verdictOf(rules, "bash", command, { worktree: project() })).action
}

describe("a loop over known values", () => {
  it.each([
    'for f in src/*.ts; do echo "== $f"; head -5 "$f"; done',
    'for f in src/*.ts; do echo "--- $f"; head -5 $f; done',
    'for f in src/*.ts; do if grep -q foo "$f"; then echo "$f"; fi; done',
    'for f in src/*.ts; do grep -c export "$f" && basename "$f" .ts; done | sort',
    'for f in odd/*.ts; do head -5 "$f"; done',
    `for f in README.md src/a.ts; do wc -l \${f}; done`,
    "for f in src/a src/b; do cat $f.ts; done",
    "for d in src odd; do ls $d | head -3; done",
    "for i in 1 2 3; do echo $i; done",
    "for i in {1..5}; do echo run $i; cat src/a.ts; done",
    "for i in $(seq 2 16); do echo $i; done",
    'for f in src/a.ts; do bash -c "cat $f"; done',
  ])("runs without a question: %s", async (command) => {
    expect(await actionOf(command)).toBe("allow")
  })

  it.each([
    ["reads a secret by name", 'for f in README.md .env; do cat "$f"; done'],
    ["reads a secret by its parts", `for f in .en; do cat "\${f}v"; done`],
    ["reads outside the worktree", "for f in /etc/passwd; do cat $f; done"],
    ["splits a name at blanks", "for f in odd/*.ts; do head -5 $f; done"],
    ["splits a value at blanks", "for f in 'README.md .env'; do cat $f; done"],
    ["expands a quoted wildcard", "for f in '.e*'; do cat $f; done"],
    ["sets the variable", 'for f in README.md; do f=.env; cat "$f"; done'],
    ["reads the variable", 'for f in README.md; do read f < p.json; cat "$f"; done'],
    ["hides the command that reads it", "for f in README.md; do re''ad f < p.json; cat \"$f\"; done"],
    ["exports the variable", 'for f in README.md; do export f=.env; cat "$f"; done'],
    ["prints into the variable", 'for f in README.md; do printf -v f .env; cat "$f"; done'],
    ["reuses the variable", 'for f in README.md; do for f in .env; do cat "$f"; done; done'],
    ["uses the variable after the loop", 'for f in README.md; do true; done; f=.env; cat "$f"'],
    ["runs the value as a program", "for c in rm; do $c -rf src; done"],
    ["means part of the value in zsh", 'for f in .envx; do cat "$f[1,4]"; done'],
    ["means the directory of the value in zsh", 'for f in src/a.ts; do cat "$f:h"; done'],
    ["has values with leading zeros", "for i in {08..11}; do cat file$i; done"],
    ["may create a name that is split", "touch 'src/a .env b.ts'; for f in src/*.ts; do cat $f; done"],
    [
      "hides a list behind an equal command",
      "for i in 1; do ./list | xargs cat; find src -name '*.ts' | xargs cat; done",
    ],
    ["has too many values", "for i in {1..17}; do cat file$i; done"],
    ["runs an unknown text in a shell", 'for f in src/*.ts; do bash -c "cat $f"; done'],
  ])("asks if it %s", async (_, command) => {
    expect(await actionOf(command)).toBe("ask")
  })

  it("applies a deny for a command to each value", async () => {
    const rules = { bash: { "npm *": "allow", "npm run deploy *": "deny" } } as const
    expect(await actionOf("for s in build deploy; do npm run $s; done", rules)).toBe("deny")
    expect(await actionOf("for s in build lint; do npm run $s; done", rules)).toBe("allow")
  })

  it("applies a deny to the command that prints the values", async () => {
    expect(await actionOf("for i in $(seq 1 3); do echo $i; done", { bash: { "seq *": "deny" } })).toBe(
      "deny",
    )
  })

  it("applies a deny for edits to a file that is created from a matching name", async () => {
    const rules = { bash: { "cp *": "allow" }, edit: { "*.bak": "deny" } } as const
    expect(await actionOf('for f in src/*.ts; do cp "$f" "$f.bak"; done', rules)).not.toBe("allow")
  })

  it("asks only for the commands in the loop, not for unknown values", async () => {
    const command = 'for i in $(seq 1 40); do curl -s "http://localhost:3000/$i"; done'
    expect(await actionOf(command, allow("curl *"))).toBe("allow")
  })
})

describe("files that xargs reads from a list", () => {
  it.each([
    "find src -name '*.ts' | xargs wc -l | sort -n | tail -20",
    "find src -name '*.ts' 2>/dev/null | xargs grep -n foo 2>/dev/null",
    "find . -name '*.md' | xargs grep -n foo",
    "find . -name '*.ts' -print0 | xargs -0 wc -l",
    "find . \\( -name '*.md' -o -name '*.json' \\) -type f | xargs cat",
    "find . -name odd -prune -o -iname '*.MD' -print | xargs cat",
    "find src -name '*.ts' | grep -v test | sort | uniq | head -5 | xargs sed -n '1,3p'",
    "find src -name '*.ts' | xargs -I{} head -3 {}",
    "find src -name '*.ts' | xargs -n1 basename",
    "find src | xargs ls -la",
    "find src -name '*.ts' | xargs",
    "grep -rl foo src | xargs sed -n 1p",
    "rg --files src | xargs wc -l",
    "rg -l foo -g '*.md' src | xargs -n 1 head",
  ])("are read without a question: %s", async (command) => {
    expect(await actionOf(command)).toBe("allow")
  })

  it.each([
    ["contain a secret", "find . -maxdepth 1 -type f | xargs cat"],
    ["may contain a secret by its case", "find . -maxdepth 1 -iname '.ENV' | xargs cat"],
    ["contain a secret that is not excluded", "find . ! -name '*.ts' | xargs cat"],
    ["are links to other files", "find links -name '*.txt' | xargs cat"],
    ["have names with blanks", "find odd -name '*.ts' | xargs cat"],
    ["are in a directory whose name has blanks", "mkdir 'x .env'; find . -name 'x*' | xargs cat"],
    ["may be created by another command", "touch 'src/x .env y.ts'; find src -name '*.ts' | xargs cat"],
    ["are outside the worktree", "find /etc -name passwd | xargs cat"],
    ["are changed", "find src -name '*.ts' | xargs rm"],
    ["are changed by an option", "find src -name '*.ts' | xargs sed -i s/a/b/"],
    ["are patterns of grep", "find src -name '*.ts' | xargs grep"],
    ["are named in text of the command", "find src -printf '.env' | xargs cat"],
    ["are parts of lines", "find src -name '*.ts' | grep -o a | xargs cat"],
    ["are contents of a file", "cat README.md | xargs cat"],
    ["are named by an unknown program", "./list | xargs cat"],
    ["come from a redirection", "find src -name '*.ts' | xargs cat < README.md"],
    ["come with error messages", "find src -name '*.ts' |& xargs cat"],
    ["come with redirected error messages", "find src -name '*.ts' 2>&1 | xargs cat"],
    ["are read beside a secret", "find src -name '*.ts' | xargs cat .env"],
    ["are part of a shell text", "find src -name '*.ts' | xargs -I{} sh -c 'cat {}'"],
    ["are run", "find src -name '*.ts' | xargs -n1 node"],
    ["are revisions of git, which may run programs", "find src -name '*.ts' | xargs git show"],
  ])("ask if they %s", async (_, command) => {
    expect(await actionOf(command)).toBe("ask")
  })

  it("ask if a directory has an unusual name", async () => {
    const worktree = project()
    mkdirSync(join(worktree, "x .env"))
    const actionFor = async (command: string) => (await verdictOf({}, "bash", command, { worktree })).action
    expect(await actionFor("find . -name 'x*' | xargs cat")).toBe("ask")
    expect(await actionFor("find . -name '*.md' | xargs cat")).toBe("allow")
  })

  it.each(["x y", "x\ty", "x\ny", "it's", 'x"y', "x\\y", "-x"])(
    "ask if xargs would not pass on a name as it is: %j",
    async (name) => {
      const worktree = project()
      mkdirSync(join(worktree, "docs/deep"), { recursive: true })
      writeFileSync(join(worktree, "docs/deep/plain"), "")
      const actions = async () => {
        const commands = ["rg --files docs", "cd docs/deep && rg --files", "cd docs/deep && rg --files ."]
        const checked = commands.map((list) => verdictOf({}, "bash", `${list} | xargs sort`, { worktree }))
        return (await Promise.all(checked)).map(({ action }) => action)
      }
      expect(await actions()).toEqual(["allow", "allow", "allow"])
      writeFileSync(join(worktree, "docs/deep", name), "")
      expect(await actions()).toEqual(["ask", "ask", "ask"])
    },
  )

  it("ask for unknown files even if a rule allows the command", async () => {
    const rules = allow("find *", "cat *", "touch *")
    expect(await actionOf("find odd -name '*.ts' | xargs cat", rules)).toBe("ask")
    expect(await actionOf("touch x; find src -name '*.ts' | xargs cat", rules)).toBe("ask")
    expect(await actionOf("find src -name '*.ts' | xargs cat", rules)).toBe("allow")
  })

  it.each(["find src -name '*.ts' | xargs cat", "for f in src/*.ts; do cat $f; done"])(
    "ask if an allowed program may create such a file before: %s",
    async (command) => {
      expect(await actionOf(command, allow("make *"))).toBe("allow")
      expect(await actionOf(`make x; ${command}`, allow("make *"))).toBe("ask")
    },
  )

  it("are denied by a rule for reading", async () => {
    const rules = { read: { "src/b.ts": "deny" } } as const
    expect(await actionOf("find src -name '*.ts' | xargs cat", rules)).toBe("deny")
    expect(await actionOf("find src -name 'a*' | xargs cat", rules)).toBe("allow")
  })
})

describe("files that find passes to a command", () => {
  it.each([
    "find src -name '*.ts' -exec grep -n foo {} \\;",
    "find . -name '*.ts' -not -path './node_modules/*' -exec grep -l foo {} +",
    "find . \\( -name '*.md' -o -name '*.json' \\) -exec head -3 {} \\;",
    "find . -name odd -prune -o -name '*.md' -exec wc -l {} +",
    "find src -exec ls -la {} +",
    "find src -type f ! -name '*.md' -exec md5sum {} + | sort",
    "find odd -name '*.ts' -exec cat {} \\;",
  ])("are read without a question: %s", async (command) => {
    expect(await actionOf(command)).toBe("allow")
  })

  it.each([
    ["contain a secret", "find . -maxdepth 1 -type f -exec cat {} +"],
    ["contain a secret in one alternative", "find . -name '*.ts' -o -exec cat {} \\;"],
    ["contain a secret by its case", "find . -iname '.ENV' -exec cat {} \\;"],
    ["are excluded by an unknown test", "find . -not \\( -name '*.ts' \\) -exec cat {} \\;"],
    ["are links to other files", "find links -name '*.txt' -exec cat {} \\;"],
    ["are outside the worktree", "find /etc -name passwd -exec cat {} \\;"],
    ["are read in another directory", "find src -name '*.ts' -execdir cat {} \\;"],
    ["are read beside a secret", "find src -name '*.ts' -exec cat {} .env \\;"],
    ["are parts of a name", "find . -type d -exec cat {}/.env \\;"],
    ["are patterns of grep", "find src -name '*.ts' -exec grep -f {} .env \\;"],
    ["are changed", "find src -name '*.ts' -exec sort -o {} {} \\;"],
    ["are deleted later", "find src -name '*.ts' -exec cat {} \\; -delete"],
    ["are part of a shell text", "find src -name '*.ts' -exec sh -c 'cat {}' \\;"],
    ["are run", "find src -name '*.ts' -exec {} \\;"],
    ["are revisions of git, which may run programs", "find src -name '*.ts' -exec git show {} \\;"],
    ["may be created by another command", "touch 'src/x'; find src -name '*' -exec cat {} \\;"],
    ["are not passed", "find . -exec ls \\;"],
  ])("ask if they %s", async (_, command) => {
    expect(await actionOf(command)).not.toBe("allow")
  })
})

it.each([
  "cat {}",
  "node x.js {}",
  "sh -c 'cat {}'",
  "rm {}",
  "env X=1 cat {}",
  "find {} -exec node x.js {} \\;",
])("asks for secrets that find passes to %s, even if a rule allows all commands", async (inner) => {
  const rules = { bash: "allow", edit: "allow" } as const
  expect(await actionOf(`find . -exec ${inner} \\;`, rules)).toBe("ask")
  expect(await actionOf(`touch x; find . -exec ${inner} \\;`, rules)).toBe("ask")
})

describe("a word that starts with a wildcard", () => {
  it.each(["ls *.json", "wc -l *", "ls -d */", "cd src && grep -n foo *.ts", "du -sh * | sort -h"])(
    "stands for the matching files: %s",
    async (command) => {
      expect(await actionOf(command)).toBe("allow")
    },
  )

  it.each([
    "cat *env",
    "cat .*",
    "cat ?env",
    "sort *.none",
    "touch ./-o; sort *",
    "git log *",
    "cat links/*",
  ])("asks if it may stand for something else: %s", async (command) => {
    expect(await actionOf(command)).toBe("ask")
  })

  it("asks if a matching name starts with a dash", async () => {
    const worktree = project()
    writeFileSync(join(worktree, "-o"), "")
    expect((await verdictOf({}, "bash", "sort *", { worktree })).action).toBe("ask")
  })
})
