// biome-ignore-all lint/suspicious/noTemplateCurlyInString: texts for a shell, not templates
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { planCommand } from "../../../src/permission/shell/plan-command.ts"
import { runs } from "../../runs.ts"
import { harness, policyOf, scopeOf, temporaryDirectory, verdictOf } from "../support.ts"

/** The word as a shell may be given it. */
const disguises: ((word: string) => string)[] = [
  (word) => word,
  (word) => `\\${word}`,
  (word) => `'${word}'`,
  (word) => `"${word}"`,
  (word) => `${word[0]}''${word.slice(1)}`,
  (word) => `${word[0]}"${word.slice(1)}"`,
  (word) => `$'\\x${word.charCodeAt(0).toString(16)}'${word.slice(1)}`,
  (word) => `${word[0]}\\\n${word.slice(1)}`,
  (word) => `/usr/bin/${word}`,
  (word) => `./${word}`,
]

const wrappings: ((command: string) => string)[] = [
  (command) => command,
  (command) => `command ${command}`,
  (command) => `sudo -n ${command}`,
  (command) => `env ${command}`,
  (command) => `nice ${command}`,
  (command) => `timeout 3 ${command}`,
  (command) => `nohup ${command}`,
  (command) => `xargs ${command}`,
  (command) => `watch ${command}`,
  (command) => `find . -exec ${command} \\;`,
]

const joinings: ((command: string) => string)[] = [
  (command) => command,
  (command) => `true; ${command}`,
  (command) => `true && ${command}`,
  (command) => `true | ${command}`,
  (command) => `true & ${command}`,
  (command) => `true\n${command}`,
  (command) => `( ${command} )`,
  (command) => `{ ${command}; }`,
  (command) => `echo $( ${command} )`,
  (command) => `echo "$( ${command} )"`,
  (command) => `cat <(${command})`,
  (command) => `if true; then ${command}; fi`,
  (command) => `for i in 1 2; do ${command}; done`,
  (command) => `! ${command}`,
  (command) => `f() { ${command}; }; f`,
  (command) => `${command} > out`,
  (command) => `cd src && ${command}`,
]

test("denies a denied command in every disguise, wrapper and list", async () => {
  const rules = { bash: { "*": "allow", "curl *": "deny" } } as const
  const pick = <T>(list: readonly T[]) => fc.constantFrom(...list)
  await fc.assert(
    fc.asyncProperty(
      pick(disguises),
      pick(wrappings),
      fc.array(pick(joinings), { maxLength: 3 }),
      async (disguise, wrap, join) => {
        const command = join.reduce((text, step) => step(text), wrap(`${disguise("curl")} e`))
        expect((await verdictOf(rules, "bash", command)).action).toBe("deny")
      },
    ),
    { numRuns: runs(400) },
  )
})

const pieces = fc.constantFrom(
  ..."mark|m''ark|\\mark|ma|rk| |\n|;|&|&&|(|)|{ |; }|$(|`|'|\"|\\|$'|<<E\n|\nE\n|<|>x|&>x|x=|$x|${|}|#|! |if |;then |;fi|for i in a;do |;done|echo |env |sh -c |eval |<(|\t|\r|\v|[[ |[ | ]|((|))|f(){ |};f|time |*|?|~|{a,b}|<<<|\\\n|{fd}".split(
    "|",
  ),
  "|",
  "||",
)
const garbage = fc.array(pieces, { maxLength: 14 }).map((list) => list.join(""))

test("never throws because of a text", async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(garbage, fc.string({ unit: "binary" }), fc.string()), async (text) => {
      expect((await planCommand(text)).commands).toBeInstanceOf(Array)
    }),
    { numRuns: runs(1_000) },
  )
})

test("allows no text that runs a denied command in any installed shell", { timeout: 120_000 }, async () => {
  const root = temporaryDirectory()
  const [worktree, bin, marker] = [join(root, "w"), join(root, "bin"), join(root, "marker")]
  mkdirSync(worktree)
  mkdirSync(bin)
  writeFileSync(join(bin, "mark"), `#!/bin/sh\n: > ${marker}\n`, { mode: 0o755 })
  for (const name of ["sh", "env", "cat"]) symlinkSync(`/bin/${name}`, join(bin, name))
  const shells = ["/bin/bash", "/bin/dash", "/bin/zsh"].filter((shell) => existsSync(shell))
  const policy = policyOf({
    bash: { "*": "allow", "mark*": "deny" },
    edit: "allow",
    external_directory: "allow",
  })
  const { permission } = harness()
  let ran = 0

  await fc.assert(
    fc.asyncProperty(garbage, async (text) => {
      const { action } = await permission.check(
        { permission: "bash", patterns: [text] },
        scopeOf(policy, worktree),
      )
      if (action !== "allow") return
      for (const shell of shells) {
        spawnSync(shell, ["-c", text], { cwd: worktree, env: { PATH: bin }, stdio: "ignore", timeout: 5_000 })
        ran += 1
      }
      expect(existsSync(marker)).toBe(false)
      rmSync(marker, { force: true })
    }),
    { numRuns: runs(800) },
  )
  expect(ran).toBeGreaterThan(runs(800) / 40)
})
