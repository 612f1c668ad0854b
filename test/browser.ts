import { findProgram } from "../src/util/find-program.ts"

/**
 * Names of Chromium, best first. The headless shell has the same engine and no browser around it: with it, the tests of
 * the page need half the processor time.
 */
const names = ["chromium-headless-shell", "chromium"]

const locations = { searchPath: process.env.PATH ?? "", worktree: import.meta.dirname, trusted: false }

/** Path of the browser for the tests, or undefined if none is installed. */
export const browserProgram = names.map((name) => findProgram(name, locations)).find(Boolean)
