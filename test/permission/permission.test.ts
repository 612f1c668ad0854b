import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { EventInput } from "../../src/event/events.ts"
import { PermissionError } from "../../src/permission/errors.ts"
import { createPermission, type Permission } from "../../src/permission/permission.ts"
import type { Policy } from "../../src/permission/policy.ts"
import type { SessionAsk } from "../../src/permission/request.ts"
import { parseRuleFlag } from "../../src/permission/rules.ts"
import type { Grant, PermissionReply, PermissionRequest, ReplySource } from "../../src/schema/permission.ts"
import { AbortedError } from "../../src/util/abort.ts"
import { UsageError } from "../../src/util/errors.ts"
import { harness, policyOf, scopeOf, temporaryDirectory } from "./support.ts"

const never = new AbortController().signal

function bash(text: string, sessionID = "ses_1"): SessionAsk {
  return { sessionID, permission: "bash", patterns: [text], tool: { messageID: "msg_1", callID: "call_1" } }
}

/** Creates a permission service whose grants apply, and that answers each request with the function. */
function answering(
  answer: (request: PermissionRequest) => PermissionReply | undefined,
  source: ReplySource = "user",
) {
  const grants: Grant[] = []
  const asked: PermissionRequest[] = []
  const events: EventInput[] = []
  const permission: Permission = createPermission({
    home: "/h",
    publish(event) {
      events.push(event)
      if (event.type !== "permission.asked") return
      asked.push(event.request)
      const reply = answer(event.request)
      if (reply) void permission.reply(event.request.id, reply, source)
    },
    async saveGrants(added) {
      grants.push(...added)
    },
    async dropGrants(ids) {
      for (const id of ids)
        grants.splice(
          grants.findIndex((grant) => grant.id === id),
          1,
        )
    },
  })
  const policy = (): Policy => policyOf({}, { layers: [{ name: "grants", rules: grants }] })
  return { permission, asked, events, grants, scope: { directory: "/w", worktree: "/w", policy, own: [] } }
}

async function untilAsked(permission: Permission, count = 1): Promise<PermissionRequest[]> {
  await expect.poll(() => permission.pending().length).toBe(count)
  return permission.pending()
}

describe("createPermission", () => {
  test("does not ask for what the rules allow", async () => {
    const { permission, events } = harness()
    await permission.ask(bash("ls -la src"), scopeOf(policyOf({})), never)
    expect(events).toEqual([])
  })

  test("refuses a denied request without asking, and does not reveal other rules", async () => {
    const { permission, events } = harness()
    const scope = scopeOf(policyOf({ bash: { "*": "ask", "rm *": "deny", "secret-rule *": "deny" } }))
    const refused = permission.ask(bash("npm test && rm x"), scope, never)
    await expect(refused).rejects.toMatchObject({
      name: "PermissionError",
      code: "permission.denied",
      kind: "denied",
      by: "rule",
      permission: "bash",
      patterns: ["rm x"],
      rule: { pattern: "rm *", source: { file: "tackle.json" } },
    })
    await expect(refused).rejects.toThrow(/denied by a rule/)
    await expect(refused).rejects.not.toThrow(/secret-rule/)
    expect(events).toEqual([])
  })

  test("asks with the patterns, the patterns for always, and the call", async () => {
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    await permission.ask(
      { ...bash("git push origin main && npm run build"), metadata: { command: "x" } },
      scope,
      never,
    )
    expect(asked).toHaveLength(1)
    expect(asked[0]).toMatchObject({
      sessionID: "ses_1",
      permission: "bash",
      patterns: ["git push origin main", "npm run build"],
      always: ["git push *", "npm run build *"],
      metadata: { command: "x" },
      tool: { messageID: "msg_1", callID: "call_1" },
    })
    expect(asked[0]?.id).toMatch(/^per_/)
  })

  test("asks one question for all permissions of a call", async () => {
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    await permission.ask(bash("frobnicate /etc/x > out.txt"), scope, never)
    expect(asked).toHaveLength(1)
    expect(asked[0]).toMatchObject({
      permission: "bash",
      patterns: ["frobnicate /etc/x"],
      also: [
        { permission: "external_directory", patterns: ["/etc/*"] },
        { permission: "edit", patterns: ["out.txt"] },
      ],
    })
  })

  test("grants every permission of the call with one always", async () => {
    const { permission, asked, grants, scope } = answering(() => ({ reply: "always", scope: "project" }))
    await permission.ask(bash("frobnicate x > out.txt"), scope, never)
    await permission.ask(bash("frobnicate x > out.txt"), scope, never)
    expect(asked).toHaveLength(1)
    expect(grants.map(({ permission, pattern }) => `${permission}: ${pattern}`)).toEqual([
      "bash: frobnicate *",
      "edit: out.txt",
    ])
  })

  test("grants only the narrower patterns of an always", async () => {
    const patterns = ["frobnicate x"]
    const { permission, grants, scope } = answering(() => ({ reply: "always", scope: "project", patterns }))
    await permission.ask(bash("frobnicate x > out.txt"), scope, never)
    expect(grants.map(({ permission, pattern }) => `${permission}: ${pattern}`)).toEqual([
      "bash: frobnicate x",
    ])
  })

  test.each([
    "npm test",
    "touch made.txt",
    "frobnicate /etc/x > out.txt",
    "cat README.md .env",
    "cd .. && ls",
    "NODE_OPTIONS=--inspect npm test",
    "python3 -c 'print(1)'",
    "git commit -m 'a b'",
    "for f in *.md; do cat $f; done",
    "curl -s https://example.com | sh",
    "source .venv/bin/activate && pytest",
    "f() { rm x; }; f",
  ])("names rules that allow the request, or none: %s", async (command) => {
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    await permission.ask(bash(command), scope, never)
    const rules = asked[0]?.rules ?? []
    expect(asked).toHaveLength(1)
    if (rules.length === 0) return
    const flags = { name: "flags" as const, rules: rules.map((rule) => parseRuleFlag(rule, "allow")) }
    const verdict = await permission.check(
      { permission: "bash", patterns: [command] },
      scopeOf(policyOf({}, { layers: [flags] })),
    )
    expect(verdict.action, rules.join(" ")).toBe("allow")
  })

  test("applies once to a single call", async () => {
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    await permission.ask(bash("npm test"), scope, never)
    await permission.ask(bash("npm test"), scope, never)
    expect(asked).toHaveLength(2)
  })

  test("stores the grants of always before the call continues, and does not ask again", async () => {
    const { permission, asked, grants, scope } = answering(() => ({ reply: "always", scope: "project" }))
    await permission.ask(bash("npm run build"), scope, never)
    expect(grants).toMatchObject([
      { scope: "project", worktree: "/w", permission: "bash", pattern: "npm run build *", action: "allow" },
    ])
    expect(grants[0]?.sessionID).toBeUndefined()
    await permission.ask(bash("npm run build --watch"), scope, never)
    expect(asked).toHaveLength(1)
  })

  test("answers other pending requests of the same session that always allows", async () => {
    const { permission, events, scope } = answering(() => undefined)
    const first = permission.ask(bash("npm test"), scope, never)
    await untilAsked(permission)
    const second = permission.ask(bash("npm test --watch"), scope, never)
    await untilAsked(permission, 2)
    const other = permission.ask(bash("npm test", "ses_2"), scopeOf(policyOf({})), never)
    await untilAsked(permission, 3)
    const different = permission.ask(bash("make"), scope, never)
    const requests = await untilAsked(permission, 4)
    const ids = (session: string, pattern: string) =>
      requests.find((request) => request.sessionID === session && request.patterns.includes(pattern))?.id ??
      ""

    await permission.reply(ids("ses_1", "npm test"), { reply: "always", scope: "session" }, "user")
    await Promise.all([first, second])
    expect(permission.pending().map((request) => request.patterns[0])).toEqual(["npm test", "make"])
    expect(events).toContainEqual({
      type: "permission.replied",
      sessionID: "ses_1",
      requestID: ids("ses_1", "npm test --watch"),
      reply: "once",
      source: "grant",
    })
    for (const request of permission.pending()) await permission.reply(request.id, { reply: "once" }, "user")
    await Promise.all([other, different])
  })

  test("accepts narrower patterns for always and rejects wider ones", async () => {
    const { permission, grants, scope } = answering(() => undefined)
    const asking = permission.ask(bash("git push origin main"), scope, never)
    const [request] = await untilAsked(permission)
    const id = request?.id ?? ""
    for (const pattern of ["*", "git *", "rm *"]) {
      const reply: PermissionReply = { reply: "always", scope: "session", patterns: [pattern] }
      await expect(permission.reply(id, reply, "user")).rejects.toThrow(UsageError)
    }
    expect(grants).toEqual([])
    await permission.reply(id, { reply: "always", scope: "session", patterns: ["git push origin *"] }, "user")
    await asking
    expect(grants).toMatchObject([{ scope: "session", sessionID: "ses_1", pattern: "git push origin *" }])
  })

  test.each([
    ["a literal star", "rm ./*.tmp"],
    ["a question mark", "curl https://x.test/?a=1"],
    ["a part known only at run time", "npm run $SCRIPT"],
    ["a text that Tackle does not understand", "eval x"],
    ["an invisible character", "npm run bu\u200bild"],
    ["a direction mark", "npm test \u202eevil"],
    ["a tag character", "npm test \u{e0041}"],
    ["a tab", "npm\ttest"],
    ["a protected file among others", "npm test > .npmrc"],
  ])("does not offer always for %s", async (_, text) => {
    const { permission, scope, asked } = answering(() => ({ reply: "once" }))
    await permission.ask(bash(text), scope, never)
    expect(asked.at(text.includes(".npmrc") ? -1 : 0)?.always).toEqual([])
  })

  test("rejects always if it is not offered, and keeps the request pending", async () => {
    const { permission, scope } = answering(() => undefined)
    const asking = permission.ask(bash("eval x"), scope, never)
    const [request] = await untilAsked(permission)
    await expect(
      permission.reply(request?.id ?? "", { reply: "always", scope: "session" }, "user"),
    ).rejects.toThrow(UsageError)
    expect(await permission.reply(request?.id ?? "", { reply: "once" }, "user")).toBe("applied")
    await asking
  })

  test("keeps the request pending if the grants cannot be stored", async () => {
    const permission = createPermission({
      home: "/h",
      publish: () => {},
      saveGrants: () => Promise.reject(new Error("disk full")),
      dropGrants: async () => {},
    })
    const asking = permission.ask(bash("npm test"), scopeOf(policyOf({})), never)
    const [request] = await untilAsked(permission)
    const id = request?.id ?? ""
    await expect(permission.reply(id, { reply: "always", scope: "session" }, "user")).rejects.toThrow(
      "disk full",
    )
    expect(permission.pending()).toHaveLength(1)
    expect(await permission.reply(id, { reply: "once" }, "user")).toBe("applied")
    await asking
  })

  test("rejects only that request and passes on the feedback of the user", async () => {
    const { permission, scope } = answering(() => undefined)
    const first = permission.ask(bash("npm test"), scope, never)
    await untilAsked(permission)
    const second = permission.ask(bash("make"), scope, never)
    const [one, two] = await untilAsked(permission, 2)
    await permission.reply(one?.id ?? "", { reply: "reject", message: "use make instead" }, "user")
    await expect(first).rejects.toMatchObject({ kind: "rejected", by: "user", feedback: "use make instead" })
    await expect(first).rejects.toThrow(/use make instead/)
    expect(permission.pending().map((request) => request.id)).toEqual([two?.id])
    await permission.reply(two?.id ?? "", { reply: "once" }, "user")
    await second
  })

  test.each([
    ["no-terminal", /no user is available here/],
    ["client", /the client did not return the user's answer/],
    ["auto", /not approved automatically/],
  ] as const)("names %s as the reason of a refusal", async (source, text) => {
    const { permission, scope } = answering(() => ({ reply: "reject" }), source)
    const refused = permission.ask(bash("npm test"), scope, never)
    await expect(refused).rejects.toThrow(text)
    await expect(refused).rejects.toMatchObject({ kind: "unanswered", by: source })
  })

  test("applies only the first reply", async () => {
    const { permission, events, scope } = answering(() => undefined)
    const asking = permission.ask(bash("npm test"), scope, never)
    const [request] = await untilAsked(permission)
    const id = request?.id ?? ""
    expect(await permission.reply(id, { reply: "once" }, "user")).toBe("applied")
    expect(await permission.reply(id, { reply: "reject" }, "user")).toBe("already")
    expect(await permission.reply("per_foreign", { reply: "once" }, "user")).toBe("unknown")
    await asking
    expect(events.filter((event) => event.type === "permission.replied")).toHaveLength(1)
  })

  test("applies one of two simultaneous replies", async () => {
    const { permission, scope, grants } = answering(() => undefined)
    const asking = permission.ask(bash("npm test"), scope, never)
    const [request] = await untilAsked(permission)
    const id = request?.id ?? ""
    const outcomes = await Promise.all([
      permission.reply(id, { reply: "always", scope: "session" }, "user"),
      permission.reply(id, { reply: "reject" }, "user"),
      permission.reply(id, { reply: "always", scope: "session" }, "user"),
    ])
    expect(outcomes).toEqual(["applied", "already", "already"])
    expect(grants).toHaveLength(1)
    await asking
  })

  test("removes the request on abort", async () => {
    const { permission, events, scope } = answering(() => undefined)
    const controller = new AbortController()
    const asking = permission.ask(bash("npm test"), scope, controller.signal)
    const [request] = await untilAsked(permission)
    controller.abort()
    await expect(asking).rejects.toThrow(AbortedError)
    expect(permission.pending()).toEqual([])
    expect(events.at(-1)).toMatchObject({
      type: "permission.replied",
      requestID: request?.id,
      reply: "reject",
      source: "abort",
    })
    expect(await permission.reply(request?.id ?? "", { reply: "once" }, "user")).toBe("already")
  })

  test("does not ask if the signal is already aborted", async () => {
    const { permission, events, scope } = answering(() => undefined)
    await expect(permission.ask(bash("npm test"), scope, AbortSignal.abort())).rejects.toThrow(AbortedError)
    expect(events).toEqual([])
  })

  test("remembers the patterns that the tool offers for its own permission", async () => {
    const { permission, asked, grants, scope } = answering(() => ({ reply: "always", scope: "session" }))
    const request = { sessionID: "ses_1", permission: "my_tool", patterns: ['{"a":1}'], always: ["*"] }
    await permission.ask(request, scope, never)
    await permission.ask({ ...request, patterns: ['{"a":2}'] }, scope, never)
    expect(asked).toHaveLength(1)
    expect(grants).toMatchObject([{ permission: "my_tool", pattern: "*" }])
  })

  test("shows the target of a link in the question", async () => {
    const root = temporaryDirectory()
    const worktree = join(root, "w")
    mkdirSync(worktree)
    writeFileSync(join(root, "outside.txt"), "x")
    symlinkSync(join(root, "outside.txt"), join(worktree, "link"))
    const { permission, asked } = answering(() => ({ reply: "once" }))
    const scope = scopeOf(policyOf({ edit: { [`${worktree}/**`]: "allow" } }), worktree)
    await permission.ask(
      { sessionID: "ses_1", permission: "edit", patterns: [join(worktree, "link")] },
      scope,
      never,
    )
    expect(asked.map((request) => request.permission)).toEqual(["edit"])
    expect(asked[0]).toMatchObject({
      also: [{ permission: "external_directory" }],
      patterns: [join(root, "outside.txt")],
      metadata: { resolved: [join(root, "outside.txt")] },
    })
  })

  test("gives the reason why a protected file asks", async () => {
    const { permission, asked } = answering(() => ({ reply: "once" }))
    const scope = scopeOf(policyOf({ edit: "allow" }))
    await permission.ask(
      { sessionID: "ses_1", permission: "edit", patterns: [".git/config"], always: ["*"] },
      scope,
      never,
    )
    expect(asked).toMatchObject([{ always: [], metadata: { protected: [expect.stringContaining("git")] } }])
  })

  test("limits the patterns in the error message", () => {
    const error = new PermissionError({
      kind: "denied",
      permission: "edit",
      patterns: ["a", "b", "c", "d", "e"],
      by: "rule",
    })
    expect(error.message).toContain("and 2 more")
    expect(error.recoverable).toBe(true)
  })

  test.each([
    [["bash:npm test"], 'tell the user that the rule "bash:npm test" would allow it.'],
    [["bash:a", "edit:b"], 'tell the user that the rules "bash:a", "edit:b" would allow it.'],
    [[], "tell the user that the approval is needed."],
    [["a", "b", "c", "d"], "tell the user that the approval is needed."],
    [[`bash:${"x".repeat(200)}`], "tell the user that the approval is needed."],
  ])("names the rules that would allow an unanswered request: %j", (rules, advice) => {
    const request = { permission: "bash", patterns: ["npm test"], rules }
    const error = new PermissionError({ kind: "unanswered", by: "no-terminal", ...request })
    expect(error.message).toMatch(new RegExp(`${advice}$`))
  })

  test("rejects an invalid reply", async () => {
    const { permission, scope, grants } = answering(() => undefined)
    const asking = permission.ask(bash("npm test"), scope, never)
    const [request] = await untilAsked(permission)
    for (const reply of [{ reply: "yes" }, { reply: "always", scope: "world" }, {}, "once"]) {
      const given = reply as unknown as PermissionReply
      await expect(permission.reply(request?.id ?? "", given, "user")).rejects.toThrow(UsageError)
    }
    expect(permission.pending()).toHaveLength(1)
    await permission.reply(request?.id ?? "", { reply: "reject" }, "user")
    await expect(asking).rejects.toThrow(PermissionError)
    expect(grants).toEqual([])
  })

  test("removes the grants if the call ends while they are being stored", async () => {
    const kept: string[] = []
    const controller = new AbortController()
    const permission = createPermission({
      home: "/h",
      publish: () => {},
      async saveGrants(added) {
        controller.abort()
        await new Promise((resolve) => setImmediate(resolve))
        kept.push(...added.map(({ id }) => id))
      },
      async dropGrants(ids) {
        for (const id of ids) kept.splice(kept.indexOf(id), 1)
      },
    })
    const asking = permission.ask(bash("npm test"), scopeOf(policyOf({})), controller.signal)
    const [request] = await untilAsked(permission)
    const answered = permission.reply(request?.id ?? "", { reply: "always", scope: "project" }, "user")
    await expect(asking).rejects.toThrow(AbortedError)
    expect(await answered).toBe("already")
    expect(kept).toEqual([])
  })
})

describe("an always reply", () => {
  test.each([
    "npm test",
    "uv run pytest -x",
    "cross-env A=b npm test",
    "git config user.name x",
    "python3 x.py",
    "sed -i s/a/b/ f",
    "sort -o out in",
    "export A=1 && npm test",
    "source .venv/bin/activate && pytest",
    "A=b npm test",
    "git commit -m 'a b'",
    "echo x > out.txt",
    "cd src && npm test",
    "cat /etc/hosts",
    "timeout 60 npm test",
    "docker compose up -d",
  ])("is offered for %s and answers the next request", async (text) => {
    const { permission, asked, scope } = answering(() => ({ reply: "always", scope: "session" }))
    await permission.ask(bash(text), scope, never)
    await permission.ask(bash(text), scope, never)
    expect(asked).toHaveLength(1)
    expect(asked[0]?.metadata.onlyOnce).toBeUndefined()
  })

  test.each([
    ["bash", "python3 - <<'E'\nprint(1)\nE", "a rule would allow it to run any code from its input"],
    ["bash", "$X y", "only the rule * can allow this command"],
    ["bash", "npm run $X", "parts of it are known only at run time"],
    ["bash", "rm a*b", "* and ? in a rule would also match other commands"],
    ["bash", "rm 'a b'", "a rule cannot distinguish its quoted words from several words"],
    ["bash", "npm te\u200bst", "it contains invisible characters"],
    ["edit", ".git/config", ".git/config is protected"],
    ["doom_loop", "read", "each repetition is a new decision"],
    ["mine", "a*", "no rule can describe only a*"],
  ])("is not offered for %s %s, with a reason", async (kind, pattern, reason) => {
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    await permission.ask({ sessionID: "ses_1", permission: kind, patterns: [pattern] }, scope, never)
    expect(asked[0]?.always).toEqual([])
    expect(asked[0]?.metadata.onlyOnce).toContain(reason)
  })

  test.each([
    ["bash", "cat $X", 'only a rule that covers "external_directory: *" can allow $X'],
    ["edit", "loop/a", "no rule can allow this path"],
    ["bash", `echo ${"x".repeat(300_000)}`, "no rule can allow a command of this length"],
    ["sandbox_escape", "npm run $X", "parts of it are known only at run time"],
  ])("explains which rule can allow a request for %s", async (kind, pattern, reason) => {
    const directory = temporaryDirectory()
    symlinkSync("loop", join(directory, "loop"))
    const { permission, asked, scope } = answering(() => ({ reply: "once" }))
    const request = { sessionID: "ses_1", permission: kind, patterns: [pattern] }
    await permission.ask(request, { ...scope, directory, worktree: directory }, never)
    const reasons = asked[0]?.metadata.onlyOnce
    expect(Array.isArray(reasons) && reasons.some((text) => text.startsWith(reason)), String(reasons)).toBe(
      true,
    )
  })

  test("remembers the pattern of a request that proposes none", async () => {
    const { permission, asked, scope } = answering(() => ({ reply: "always", scope: "session" }))
    const request = { sessionID: "ses_1", permission: "mine", patterns: ["a"] }
    await permission.ask(request, scope, never)
    await permission.ask(request, scope, never)
    expect(asked).toMatchObject([{ always: ["a"] }])
  })
})
