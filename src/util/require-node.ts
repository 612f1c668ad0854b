/**
 * Throws an error if this version of Node is too old. Import this module first in each entry point of the package. The
 * package's modules can be loaded by older versions of Node, so the user sees this error and not a syntax error.
 */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
if (major < 24 || (major === 24 && minor < 15))
  throw new Error(
    `Tackle requires Node.js 24.15 or newer, but this is ${process.version}. Run your program with a newer version of Node.js.`,
  )
