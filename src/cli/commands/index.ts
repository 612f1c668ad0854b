/** What the commands do, in one module: cut up by command the bundle has twice the files, each of which takes a millisecond. */
export * as config from "./config.ts"
export * as doctor from "./doctor.ts"
export * as models from "./models.ts"
export * as permission from "./permission.ts"
export * as run from "./run.ts"
export * as session from "./session.ts"
export * as tool from "./tool.ts"
export * as trust from "./trust.ts"
