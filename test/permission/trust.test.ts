import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { collectTrustItems, openTrust, type TrustItem } from "../../src/permission/trust.ts"
import { TackleError } from "../../src/util/errors.ts"

let root: string
let file: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tackle-trust-"))
  file = join(root, "data", "trust.json")
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const config: TrustItem = { kind: "config", path: "tackle.json", hash: "a1" }
const tool: TrustItem = { kind: "tool", path: ".tackle/tool/x.ts", hash: "b2" }

describe("trust", () => {
  test("trusts nothing at first, except an empty list", () => {
    const trust = openTrust(file)
    expect(trust.problem).toBeUndefined()
    expect(trust.isTrusted("/w", [config, tool])).toEqual({ trusted: false, changed: [config, tool] })
    expect(trust.isTrusted("/w", [])).toEqual({ trusted: true, changed: [] })
  })

  test("keeps trust for the next process", () => {
    openTrust(file).trust("/w", [config, tool])
    expect(openTrust(file).isTrusted("/w", [config, tool])).toEqual({ trusted: true, changed: [] })
  })

  test("does not extend to nested worktrees, neighbors or parents", () => {
    const trust = openTrust(file)
    trust.trust("/w", [config])
    for (const directory of ["/w/sub", "/w-other", "/w2", "/"])
      expect(trust.isTrusted(directory, [config]), directory).toEqual({ trusted: false, changed: [config] })
  })

  test("does not trust changed and new items, but keeps the others", () => {
    const trust = openTrust(file)
    trust.trust("/w", [config, tool])
    const changed = { ...tool, hash: "other" }
    expect(trust.isTrusted("/w", [config, changed])).toEqual({ trusted: false, changed: [changed] })
    const added = { ...tool, path: ".tackle/tool/y.ts" }
    expect(trust.isTrusted("/w", [config, tool, added])).toEqual({ trusted: false, changed: [added] })
    // An item with the same path and another kind.
    const other: TrustItem = { ...config, kind: "tool" }
    expect(trust.isTrusted("/w", [other]).trusted).toBe(false)
  })

  test.each(["/w/nested", "/", "/w2", "/w/", "__proto__", "constructor"])(
    "does not apply the trust to %s",
    (directory) => {
      const trust = openTrust(file)
      trust.trust("/w", [config])
      expect(trust.isTrusted(directory, [config]).trusted).toBe(false)
    },
  )

  test("keeps the trust in other items until it is revoked", () => {
    const trust = openTrust(file)
    trust.trust("/w", [config])
    trust.trust("/other", [config])
    trust.trust("/w", [tool])
    expect(trust.isTrusted("/w", [config, tool]).trusted).toBe(true)
    trust.trust("/w", [{ ...tool, hash: "later" }])
    expect(trust.isTrusted("/w", [config, tool]).changed).toEqual([tool])
    trust.revoke("/w")
    expect(openTrust(file).isTrusted("/w", [config, tool]).changed).toEqual([config, tool])
    expect(openTrust(file).isTrusted("/other", [config]).trusted).toBe(true)
  })

  test("revokes single items and lists the remaining ones", () => {
    const trust = openTrust(file)
    trust.trust("/w", [config, tool])
    expect(trust.known("/w")).toEqual([
      { kind: "tool", path: tool.path },
      { kind: "config", path: config.path },
    ])
    trust.revoke("/w", [tool])
    expect(openTrust(file).isTrusted("/w", [config, tool]).changed).toEqual([tool])
    trust.revoke("/w", [config])
    expect(readFileSync(file, "utf8")).not.toContain("/w")
    expect(trust.known("/w")).toEqual([])
  })

  test("distinguishes new, changed and trusted items", () => {
    const trust = openTrust(file)
    trust.trust("/w", [config])
    expect(trust.state("/w", config)).toBe("trusted")
    expect(trust.state("/w", { ...config, hash: "other" })).toBe("changed")
    expect(trust.state("/w", tool)).toBe("new")
    expect(trust.state("/nested", config)).toBe("new")
  })

  test("never trusts an unreadable item", () => {
    const trust = openTrust(file)
    const unread = { ...config, hash: "" }
    trust.trust("/w", [unread])
    expect(trust.isTrusted("/w", [unread]).trusted).toBe(false)
  })

  test("keeps the changes of another process", () => {
    const [one, two] = [openTrust(file), openTrust(file)]
    one.trust("/one", [config])
    two.trust("/two", [tool])
    const later = openTrust(file)
    expect(later.isTrusted("/one", [config]).trusted).toBe(true)
    expect(later.isTrusted("/two", [tool]).trusted).toBe(true)
  })

  test("writes a file for the owner only and leaves no temporary file", () => {
    openTrust(file).trust("/w", [config])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(dirname(file))).toEqual(["trust.json"])
  })

  test.each([
    "",
    "{",
    "[]",
    "null",
    '{"version":2,"directories":{}}',
    '{"version":1,"directories":{"/w":7}}',
  ])("trusts nothing with a file that contains %j, until it is written again", (text) => {
    mkdirSync(dirname(file))
    writeFileSync(file, text)
    const trust = openTrust(file)
    expect(trust.problem).toContain(file)
    expect(trust.problem).toContain("tackle trust")
    expect(trust.isTrusted("/w", [config]).trusted).toBe(false)
    trust.trust("/w", [config])
    expect(trust.problem).toBeUndefined()
    expect(openTrust(file).isTrusted("/w", [config]).trusted).toBe(true)
  })

  test("trusts nothing with an unreadable file and throws for an unwritable one", () => {
    mkdirSync(file, { recursive: true })
    const trust = openTrust(file)
    expect(trust.problem).toContain(file)
    expect(trust.isTrusted("/w", [config]).trusted).toBe(false)
    expect(() => trust.trust("/w", [config])).toThrow(TackleError)
    expect(readdirSync(dirname(file))).toEqual(["trust.json"])
  })
})

describe("trust items", () => {
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  const collect = () =>
    collectTrustItems(root, {
      config: ["tackle.json", "tackle.toml"].map((name) => join(root, name)).flatMap(withHash),
      toolFolders: ["tool", "tools"].map((name) => join(root, ".tackle", name)),
    })
  const withHash = (path: string) =>
    existsSync(path) ? [{ path, hash: createHash("sha256").update(readFileSync(path)).digest("hex") }] : []
  const hashOf = (path: string) => collect().find((item) => item.path === path)?.hash

  test("lists existing files with the hash of their content", () => {
    write("tackle.json", "{}")
    write(".tackle/tool/a.ts", "a")
    write(".tackle/tools/run.py", "b")
    const items = collect()
    expect(items.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "tool .tackle/tool/a.ts",
      "tool .tackle/tools/run.py",
      "config tackle.json",
    ])
    expect(items[2]?.hash).toBe("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
    write("tackle.json", "{ }")
    expect(hashOf("tackle.json")).not.toBe(items[2]?.hash)
    expect(hashOf(".tackle/tool/a.ts")).toBe(items[0]?.hash)
  })

  test("is empty for an empty project", () => {
    expect(collect()).toEqual([])
  })

  test("covers the subdirectories of a tool folder in the hash", () => {
    write(".tackle/tool/a.ts", "a")
    const alone = hashOf(".tackle/tool/a.ts")
    write(".tackle/tool/lib/deep/b.ts", "b")
    const withHelper = hashOf(".tackle/tool/a.ts")
    write(".tackle/tool/lib/deep/b.ts", "B")
    const changed = hashOf(".tackle/tool/a.ts")
    symlinkSync("/tmp", join(root, ".tackle/tool/lib/link"))
    const linked = hashOf(".tackle/tool/a.ts")
    expect(new Set([alone, withHelper, changed, linked]).size).toBe(4)
    expect(hashOf(".tackle/tool/lib/deep/b.ts")).toBeUndefined()
    write(".tackle/tool/node_modules/x/index.js", "x")
    expect(hashOf(".tackle/tool/a.ts")).toBe(linked)
  })

  test("does not trust link loops and devices, and does not read huge files", () => {
    write(".tackle/tool/giant.ts", "")
    truncateSync(join(root, ".tackle/tool/giant.ts"), 100 * 1024 ** 3)
    symlinkSync("loop.ts", join(root, ".tackle/tool/loop.ts"))
    symlinkSync("/dev/zero", join(root, ".tackle/tool/zero.ts"))
    expect(collect()).toMatchObject([{ kind: "tool", path: ".tackle/tool/giant.ts", hash: "" }])
    expect(collect()[0]?.contents.size).toBe(0)
  })
})
