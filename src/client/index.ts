/**
 * The client for a server, imported with `import { createClient } from "tackle/client"`. Works in browsers and in Node.
 */
export type { Awaitable, SessionApi, SessionsApi, TackleApi } from "./api.ts"
export { type ClientOptions, createClient, type TackleClient } from "./client.ts"
export { ClientError } from "./errors.ts"
export type { RemoteSession, SessionClient, SessionsClient } from "./sessions.ts"
