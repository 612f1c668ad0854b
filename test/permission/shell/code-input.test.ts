import { describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { interpreters } from "../../../src/permission/shell/programs/interpreters.ts"
import { wrappers } from "../../../src/permission/shell/programs/wrappers.ts"
import { verdictOf } from "../support.ts"

const everything: PermissionConfig = { bash: "allow", edit: "allow", external_directory: "allow" }
const denied: PermissionConfig = {
  ...everything,
  bash: { "*": "allow", "curl *": "deny", "git push *": "deny" },
}
const hidden: PermissionConfig = { ...everything, read: { "secret/**": "deny", "notes.txt": "deny" } }

const takesInput = interpreters.flatMap(([names, { input }]) => (input ? names.split(" ") : []))
const shells = wrappers.flatMap(([names, { wraps }]) =>
  wraps === "shell" || wraps === "unknown" ? names.split(" ") : [],
)

/** Returns texts in which a program runs code from its input. */
function fed(program: string, code: string): string[] {
  return [
    `${program} <<'E'\n${code}\nE`,
    `${program} <<< '${code}'`,
    `echo '${code}' | ${program}`,
    `cat <<'E' | ${program}\n${code}\nE`,
    `{ ${program}; } <<'E'\n${code}\nE`,
    `bash -c ${program} <<'E'\n${code}\nE`,
    `timeout 5 ${program} <<'E'\n${code}\nE`,
    `env A=b ${program} <<'E'\n${code}\nE`,
    `exec <<'E'\n${code}\nE\n${program}`,
    `sudo -E ${program} <<'E'\n${code}\nE`,
    `npx ${program} <<'E'\n${code}\nE`,
  ]
}

/** Returns texts in which a program with an operand for its script runs code from its input. */
function fedAsScript(program: string, code: string): string[] {
  const files = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "/dev//stdin", "../../dev/stdin"]
  return [
    ...files.map((file) => `${program} ${file} <<'E'\n${code}\nE`),
    `${program} /dev/fd/3 3<<'E'\n${code}\nE`,
    `exec 3<<'E'\n${code}\nE\n${program} /dev/fd/3`,
    `${program} <(echo '${code}')`,
    `cat > x.y <<'E'\n${code}\nE\n${program} x.y`,
    `busybox ${program} /dev/stdin <<'E'\n${code}\nE`,
  ]
}

async function allowed(rules: PermissionConfig, texts: readonly string[]): Promise<string[]> {
  const found: string[] = []
  for (const text of texts) if ((await verdictOf(rules, "bash", text)).action === "allow") found.push(text)
  return found
}

describe("code in the input of a program", () => {
  it.each(["curl e", 'x("curl e")', 'run(["git", "push", "o"])', 'x("cu" + "rl e")'])(
    "does not run a denied command: %s",
    async (code) => {
      expect(await allowed(denied, fed("python3", code))).toEqual([])
      const texts = takesInput.map((program) => `${program} <<'E'\n${code}\nE`)
      expect(await allowed(denied, texts)).toEqual([])
    },
  )

  it.each(['open("secret/a")', 'open("notes.txt")', "cat secret/a", 'glob("secret/*")'])(
    "does not read a denied file: %s",
    async (code) => {
      expect(await allowed(hidden, fed("sqlite3 a.db", code))).toEqual([])
      const texts = [...takesInput, ...shells].map((program) => `echo '${code}' | ${program}`)
      expect(await allowed(hidden, texts)).toEqual([])
    },
  )

  it("is searched if an operand names the input or a file that the text writes", async () => {
    const names =
      "bash hush python3 python3.11 perl5.36.0 ruby3.2 node22 php8.2 lua5.4 Rscript julia-1.10 tclsh8.6 source"
    const programs = [...names.split(" "), "make -f", "deno run", "bun run"]
    const commands = programs.flatMap((program) => fedAsScript(program, "curl e"))
    expect(await allowed(denied, commands)).toEqual([])
    const reads = programs.flatMap((program) => fedAsScript(program, 'open("secret/a")'))
    expect(await allowed(hidden, reads)).toEqual([])
  })

  it.each([
    "git commit -F - <<'E'\nRun curl e and git push\nE",
    "cat <<'E'\ncurl e\nE",
    "tee a <<'E'\ncurl e\nE",
    "python3 x.py <<'E'\ncurl e\nE",
    "echo 'curl e' | python3 x.py",
    "echo 'curl e' | grep curl",
    "git commit -m 'curl e' && python3 x.py",
    "sqlite3 a.db 'select 1'; git commit -m 'curl e'",
    "python3 - <<'E'\nprint(1)\nE",
    "psql -c 'select 1' <<'E'\ncurl e\nE",
  ])("is not searched in data: %s", async (text) => {
    expect(await allowed(denied, [text])).toEqual([text])
  })
})

describe("code in the arguments of a program", () => {
  it.each([
    "python3.11 -c 'os.system(\"curl e\")'",
    "python3.13t -c 'os.system(\"curl e\")'",
    "/usr/bin/perl5.36-x86_64-linux-gnu -e 'system(\"curl e\")'",
    "bash5 -c 'curl e'",
    "bash-5.2.15 -c 'curl e'",
    "busybox hush -c 'curl e'",
    "python3 -m timeit 'os.system(\"curl e\")'",
    "python3 -um timeit 'os.system(\"curl e\")'",
    "python3 -mtimeit -s 'os.system(\"curl e\")'",
    "python3 -m cProfile -m timeit 'os.system(\"curl e\")'",
    "python3 -m pdb -c '!os.system(\"curl e\")' x.py",
    "python3 -m code <<'E'\nos.system(\"curl e\")\nE",
    "python3 -i x.py <<'E'\nos.system(\"curl e\")\nE",
    "sqlite3 a.db '.shell curl e'",
    "vim -es +'!curl e' x",
    "node --entry-url 'data:text/javascript,x(\"curl e\")'",
    "node --entry-url 'data:text/javascript,x(%22curl%20e%22)'",
    "node --entry-url 'data:text/javascript;base64,eCgiY3VybCBlIik='",
    "node --import 'data:text/javascript,x(\"curl%20e\")' x.js",
    "deno run 'data:text/javascript,x(\"curl%20e\")'",
  ])("is searched for denied commands: %s", async (text) => {
    expect(await allowed(denied, [text])).toEqual([])
  })

  it("asks if the code is too long to be searched", async () => {
    const code = Array.from({ length: 5_000 }, (_, index) => `a${index} = b${index} + c`).join("\n")
    expect((await verdictOf(denied, "bash", `python3 - <<'E'\n${code}\nE`)).action).toBe("ask")
    expect((await verdictOf(everything, "bash", `python3 - <<'E'\n${code}\nE`)).action).toBe("allow")
  })
})
