/** `tackle/testing`: helpers for tests of tools and sessions, with real servers and files. */
import "../util/require-node.ts"

export { type FakeContext, fakeContext } from "./context.ts"
export { type ModelServer, type RecordedRequest, type Script, startModelServer } from "./model-server.ts"
export { type TemporaryProject, temporaryProject } from "./project.ts"
export type { Fault, Reply, ScriptedCall, ScriptedUsage } from "./reply.ts"
