/** `tackle/testing`: what tests of tools and of whole sessions are made with. Real servers and files, no mocks. */
export { type FakeContext, fakeContext } from "./context.ts"
export { type ModelServer, type RecordedRequest, type Script, startModelServer } from "./model-server.ts"
export { type TemporaryProject, temporaryProject } from "./project.ts"
export type { Fault, Reply, ScriptedCall, ScriptedUsage } from "./reply.ts"
