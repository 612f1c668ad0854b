/**
 * Builds Tackle after `npm ci` in a clone. Does not build again if another project installs a built clone: npm then runs
 * this script too, with the project's directory as `INIT_CWD`.
 */
import { existsSync } from "node:fs"
import { join, relative, resolve } from "node:path"

const root = resolve(import.meta.dirname, "..")
const installer = process.env.INIT_CWD ?? root
const isDependency = relative(root, installer).startsWith("..")
if (!isDependency || !existsSync(join(root, "dist"))) await import("./build.ts")
