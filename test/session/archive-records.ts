import fc from "fast-check"
import type { Message, MessageWithParts } from "../../src/schema/message.ts"
import type { Part } from "../../src/schema/part.ts"
import type { Session } from "../../src/schema/session.ts"
import type { Todo } from "../../src/schema/todo.ts"
import type { ToolState } from "../../src/schema/tool-state.ts"
import type { Change } from "../../src/store/store.ts"

/** A part without its ids. */
type PartBody = Part extends infer Each
  ? Each extends Part
    ? Omit<Each, "id" | "sessionID" | "messageID">
    : never
  : never

const text = fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: "grapheme", maxLength: 20 }))
const time = fc.nat(1e13)
const span = fc.record({ start: time, end: time })
/** Values that survive JSON unchanged. */
const record = fc.dictionary(
  fc.string({ maxLength: 10 }).filter((key) => key !== "__proto__"),
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown),
  { maxKeys: 3 },
)
const tokens = fc.record({
  input: fc.nat(),
  output: fc.nat(),
  reasoning: fc.nat(),
  cache: fc.record({ read: fc.nat(), write: fc.nat() }),
})
const file = fc.record(
  { type: fc.constant("file" as const), mime: text, url: text, filename: text },
  { requiredKeys: ["type", "mime", "url"] },
)
const version = fc.record({ hash: text, mode: fc.nat(0o7777) }, { requiredKeys: ["hash"] })

const state: fc.Arbitrary<ToolState> = fc.oneof(
  fc.record({ status: fc.constant("pending" as const), input: record, raw: text }),
  fc.record({
    status: fc.constant("running" as const),
    input: record,
    title: text,
    time: fc.record({ start: time }),
  }),
  fc.record(
    {
      ...{
        status: fc.constant("completed" as const),
        input: record,
        output: text,
        title: text,
        metadata: record,
      },
      ...{ time: span, attachments: fc.array(file, { maxLength: 2 }), pruned: text },
    },
    { requiredKeys: ["status", "input", "output", "title", "metadata", "time"] },
  ),
  fc.record(
    { status: fc.constant("error" as const), input: record, error: text, metadata: record, time: span },
    { requiredKeys: ["status", "input", "error", "time"] },
  ),
)

const seen = fc.record({
  path: text,
  stamp: fc.record(
    { size: fc.nat(), mtimeMs: fc.nat(), digest: fc.constant("d".repeat(64)) },
    { requiredKeys: ["size", "mtimeMs"] },
  ),
})

const body: fc.Arbitrary<PartBody> = fc.oneof(
  fc.record(
    { type: fc.constant("text" as const), text, synthetic: fc.boolean(), time: span, metadata: record },
    { requiredKeys: ["type", "text"] },
  ),
  fc.record({ type: fc.constant("reasoning" as const), text, time: span, metadata: record }),
  file,
  fc.record(
    {
      type: fc.constant("tool" as const),
      callID: text,
      tool: text,
      parentCallID: text,
      state,
      metadata: record,
    },
    { requiredKeys: ["type", "callID", "tool", "state"] },
  ),
  fc.record({ type: fc.constant("step-start" as const) }),
  fc.record({
    type: fc.constant("step-finish" as const),
    reason: fc.constantFrom("stop" as const, "tool-calls" as const),
    ...{ tokens, cost: fc.nat() },
  }),
  fc.record({
    ...{ type: fc.constant("retry" as const), attempt: fc.nat(), error: text, delayMs: fc.nat() },
    time: fc.record({ created: time }),
  }),
  fc.record(
    {
      type: fc.constant("patch" as const),
      files: fc.array(
        fc.record({ path: text, before: version, after: version }, { requiredKeys: ["path"] }),
        {
          maxLength: 2,
        },
      ),
      ...{ unseen: fc.array(text, { maxLength: 2 }), undone: fc.boolean() },
    },
    { requiredKeys: ["type", "files"] },
  ),
  fc.record(
    {
      ...{ type: fc.constant("compaction" as const), auto: fc.boolean(), from: text },
      ...{
        tools: fc.array(text, { maxLength: 2 }),
        seen: fc.array(seen, { maxLength: 2 }),
        tokens,
        cost: fc.nat(),
      },
    },
    { requiredKeys: ["type", "auto"] },
  ),
)

const todo: fc.Arbitrary<Todo> = fc.record({
  content: text.map((words) => `${words}.`),
  status: fc.constantFrom("pending" as const, "completed" as const),
  priority: fc.constantFrom("high" as const, "low" as const),
})

const step = fc.record({
  isUser: fc.boolean(),
  bodies: fc.array(body, { maxLength: 4 }),
  ...{ created: time, agent: text, place: text, tokens },
})
const session = fc.record({
  ...{ title: text, agent: text, created: time },
  steps: fc.array(step, { maxLength: 4 }),
  todos: fc.array(todo, { maxLength: 2 }),
})

/** A session `ses_0` with any kind of part, and sessions of subagents below it at any depth. */
export const anySession: fc.Arbitrary<Change[]> = fc
  .array(fc.tuple(session, fc.nat()), { minLength: 1, maxLength: 4 })
  .map((given) =>
    given.flatMap(([each, parent], index) =>
      changesOf(each, `ses_${index}`, index === 0 ? undefined : `ses_${parent % index}`),
    ),
  )

type Given = typeof session extends fc.Arbitrary<infer T> ? T : never

function changesOf({ title, agent, created, steps, todos }: Given, id: string, parentID?: string): Change[] {
  const time = { created, updated: created }
  const model = { providerID: "test", modelID: "m" }
  const own: Session = { id, title, directory: "/w", worktree: "/w", agent, time }
  if (parentID !== undefined) own.parentID = parentID
  const entries = steps.map((each, index): MessageWithParts => {
    const base = { id: `msg_${id}_${index}`, sessionID: id, agent: each.agent, model }
    const message: Message =
      each.isUser || index === 0
        ? { ...base, role: "user", time: { created: each.created } }
        : {
            ...{ ...base, role: "assistant", time: { created: each.created, completed: each.created } },
            ...{
              parentID: `msg_${id}_0`,
              path: { cwd: each.place, root: each.place },
              cost: 0,
              tokens: each.tokens,
            },
          }
    const parts = each.bodies.map((given, place) => {
      const belongs = { id: `prt_${id}_${index}_${place}`, sessionID: id, messageID: message.id }
      return { ...belongs, ...given } as Part
    })
    return { message, parts }
  })
  return [
    { kind: "session", session: own },
    ...entries.flatMap(({ message, parts }): Change[] => [
      { kind: "message", message },
      ...parts.map((part): Change => ({ kind: "part", part })),
    ]),
    ...(todos.length > 0 ? [{ kind: "todos" as const, sessionID: id, todos }] : []),
  ]
}
