// biome-ignore-all lint/suspicious/noTemplateCurlyInString: texts for a shell, not templates
import { describe, expect, test } from "vitest"
import { planCommand } from "../../../src/permission/shell/plan-command.ts"

async function patterns(text: string): Promise<string[]> {
  return (await planCommand(text)).commands.map((command) => command.pattern)
}

describe("the commands of a text", () => {
  test.each([
    ["ls -l a", ["ls -l a"]],
    ["", []],
    ["# nothing", []],
    ["a; b & c\nd", ["a", "b", "c", "d"]],
    ["a && b || c | d", ["a", "b", "c", "d"]],
    ["(a; b)", ["a", "b"]],
    ["{ a; b; }", ["a", "b"]],
    ["if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]],
    ["while a; do b; done", ["a", "b"]],
    ["for f in x; do a $f; done", ["a x"]],
    ["case $x in p) a;; q|r) b;; esac", ["a", "b"]],
    ["f() { a; }", ["a"]],
    ['a $(b) `c` "$(d)"', ["b", "c", "d", "a $(b) `c` $(d)"]],
    ["a <(b) >(c)", ["b", "c", "a <(b) >(c)"]],
    ["x=$(a) b", ["a", "b"]],
    ["a > f -x b", ["a -x b"]],
    ["cat <<E -n\nx\nE\na", ["cat -n", "a"]],
    ["cat <<E && a\nx\nE", ["cat", "a"]],
    ["cat <<E | a\nx\nE", ["cat", "a"]],
    ["cd s && a > f", ["cd s", "a"]],
    ["sudo -u bob nice -n 3 a b", ["sudo -u bob nice -n 3 a b", "nice -n 3 a b", "a b"]],
    ["env -i X=1 a", ["env -i X=1 a", "a"]],
    ["timeout 5 a", ["timeout 5 a", "a"]],
    ["command -v a", ["command -v a"]],
    ["bash -c 'a; b'", ["bash -c a; b", "a", "b"]],
    ["sh -c 'sh -c a'", ["sh -c sh -c a", "sh -c a", "a"]],
    ["sh script.sh", ["sh script.sh"]],
    ["find . -exec a {} + -exec b \\;", ["find . -exec a {} + -exec b ;", "a {}", "b"]],
    ["xargs -n 1 a", ["xargs -n 1 a", "a …"]],
    ["[ -f x -a ! -d y ]", ["[ -f x -a ! -d y ]"]],
  ])("%j", async (text, expected) => {
    expect(await patterns(text)).toEqual(expected)
  })
})

describe("words", () => {
  test.each([
    ["r''m", "rm"],
    ["\\rm", "rm"],
    ["a\"b\"'c'$'d'", "abcd"],
    ["$'\\x72\\155\\u0061'", "rma"],
    ["'a b'", "a b"],
    ['"a\\"b\\$c\\d"', 'a"b$c\\d'],
    ['"a\\\nb"', "ab"],
    ["a\\ b", "a b"],
    ["''", ""],
  ])("%s is %j", async (text, expected) => {
    const { commands, opaque } = await planCommand(`run ${text}`)
    expect(opaque).toBeUndefined()
    expect(commands[0]?.argv[1]).toMatchObject({ text: expected, dynamic: false, glob: false })
  })

  test.each([
    ["$x", { dynamic: true, splits: true, span: "*" }],
    ['"$x"', { dynamic: true, splits: false, span: "*" }],
    ["a$x/b", { dynamic: true, span: "a*/b" }],
    ['"$@"', { dynamic: true, splits: true }],
    ["{a,b}", { dynamic: true, splits: true }],
    ["*.ts", { dynamic: false, glob: true, span: "*.ts" }],
    ["[ab]c", { glob: true, span: "*" }],
    ["'*'", { dynamic: false, glob: false, span: "?" }],
    ["$HOME/x", { dynamic: false, base: "home", tail: "/x" }],
    ['"${HOME}/x"', { dynamic: false, base: "home", tail: "/x" }],
    ["~/x", { dynamic: false, base: "home", tail: "/x" }],
    ["$PWD", { dynamic: false, base: "directory", tail: "" }],
    ["~bob", { dynamic: true }],
    ["x=~/y", { dynamic: true }],
    ["a$HOME", { dynamic: true }],
    ["{}", { dynamic: false, glob: false }],
  ])("%s", async (text, expected) => {
    expect((await planCommand(`run ${text}`)).commands[0]?.argv[1]).toMatchObject(expected)
  })
})

describe("a text that cannot be parsed", () => {
  test.each([
    "$x a",
    "`a` b",
    "a$x",
    "{a,b} c",
    "a* b",
    "eval a",
    "alias a=b",
    "unset a",
    "read a",
    "set -a",
    "trap a EXIT",
    "printf -v a b",
    "test -v a",
    "sh",
    "sh -i",
    "bash --rcfile f -c a",
    "bash -c $x",
    "sudo -i a",
    "env -S a",
    "a ${b:=c}",
    "a ${!b}",
    "a ${b[0]}",
    "a ${b@P}",
    "a $((b))",
    "a $'\\xff'",
    "su -c a",
    "shopt -s expand_aliases",
    'a "$(b',
    "pushd d",
    "then a",
  ])("the command %j", async (text) => {
    const { commands, opaque } = await planCommand(text)
    expect(opaque ?? commands.find((command) => command.opaque !== undefined)?.opaque).toBeTypeOf("string")
  })

  test.each([
    "a (",
    "a )",
    "f() { a; }",
    "((a))",
    "[[ a -eq b ]]",
    "for ((i=0;;)); do a; done",
    "X=1",
    "PATH=x; a",
    "for PATH in a; do b; done",
    "a\rb",
    "a\vb",
    "a\0b",
    "a {fd}>f",
    "a &>f b",
    "a <<E\n`b`\nE",
    "a <<$x\nb\n$x",
    "a <<E\nb",
    "a\\\nb 'c'",
    "a `b \\`c\\``",
  ])("the text %j as a whole", async (text) => {
    expect((await planCommand(text)).opaque).toBeTypeOf("string")
  })

  test.each([
    "a; ls -l",
    "CI=1 a",
    "set -euo pipefail; a",
    "a 2>&1 >/dev/null",
    "a <<'E'\n$(b)\nE",
    "a <<< b",
    "a \\\n  b",
    "a $((1 + 2))",
  ])("%j is", async (text) => {
    const { commands, opaque } = await planCommand(text)
    expect(opaque).toBeUndefined()
    expect(commands.filter((command) => command.opaque !== undefined)).toEqual([])
  })

  test("rejects a text that is too long, and shells that nest too deeply", async () => {
    expect((await planCommand("a".repeat(300_000))).opaque).toContain("too long")
    let text = "a"
    for (let depth = 0; depth < 12; depth++) text = `sh -c ${JSON.stringify(text).replaceAll("$", "\\$")}`
    const plan = await planCommand(text)
    expect(plan.opaque ?? plan.commands.some((command) => command.opaque)).toBeTruthy()
    expect((await planCommand(`${"(".repeat(5_000)}a${")".repeat(5_000)}`)).opaque).toBeTypeOf("string")
  })
})

describe("where commands run", () => {
  test.each<[string, string, readonly string[] | undefined]>([
    ["cd s && run", "run", ["s"]],
    ["cd s; run", "run", ["s", "."]],
    ["cd s || run", "run", ["."]],
    ["cd s && cd t && run", "run", ["s/t"]],
    ["(cd s); run", "run", ["."]],
    ["cd /w/s && run", "run", ["/w/s"]],
    ["cd && run", "run", ["~"]],
    ["cd ~/s && run", "run", ["~/s"]],
    ["cd $x && run", "run", undefined],
    ["cd s/../t && run", "run", undefined],
    ["cd .. && run", "run", undefined],
    ["cd - && run", "run", undefined],
    ["if a; then cd s; fi; run", "run", [".", "s"]],
    ["command cd s; run", "run", undefined],
    ["eval 'cd s'; run", "run", undefined],
    ["pushd s; run", "run", undefined],
    ["sh -c 'cd s && run'", "run", ["s"]],
    ["cd s && sh -c run", "run", ["s"]],
    ["env -C s run", "run", undefined],
    ["cd s && echo $(run)", "run", ["s"]],
  ])("%j", async (text, pattern, expected) => {
    const { commands } = await planCommand(text)
    const found = commands.find((command) => command.pattern === pattern)
    expect(found?.directories && [...found.directories].sort()).toEqual(expected && [...expected].sort())
  })
})

describe("files that the shell opens", () => {
  test.each([
    ["a < f", ["read f"]],
    ["a > f 2>> g", ["write f", "write g"]],
    ["a >| f", ["write f"]],
    ["a &> f", ["write f"]],
    ["a >& f", ["write f"]],
    ["a 2>&1 >&2 2>&-", []],
    ["> f", ["write f"]],
    ["{ a; } > f", ["write f"]],
    ["for x in f g; do a; done", []],
    ["for x in f g; do read x; done", ["mention f", "mention g"]],
    ["for x in $(f) g; do read x; done", ["mention g"]],
    ["cat <<E > f\nx\nE", ["write f"]],
  ])("%j", async (text, expected) => {
    expect((await planCommand(text)).files.map(({ kind, target }) => `${kind} ${target.text}`)).toEqual(
      expected,
    )
  })

  test("assigns a redirection after a list to the last command and its directory", async () => {
    expect((await planCommand("cd s && a > f")).files).toMatchObject([{ kind: "write", directories: ["s"] }])
  })
})
