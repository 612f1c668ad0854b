import { readFileSync, renameSync, writeFileSync } from "node:fs"
import Module, { createRequire, getCompileCacheDir } from "node:module"
import { basename, dirname, join } from "node:path"
import { Script } from "node:vm"
import { crc32 } from "node:zlib"

/**
 * Makes `require` load the bundle's other files with code that was compiled in earlier runs. Node's compile cache
 * stores a file before it runs, so V8 recompiles every function that a run calls. This cache stores a file at the end
 * of a run, with these functions. It uses the directory of Node's cache, and does nothing if that cache is disabled.
 */
export function useCodeCache(): void {
  const directory = getCompileCacheDir()
  if (directory === undefined) return
  const loaded: { script: Script; file: string; runs: number }[] = []
  // All bundle files except the entry points have this extension. With a function for `.cjs`, Node would not find the
  // named exports of some packages.
  createRequire(import.meta.filename).extensions[".chunk.cjs"] = (module, filename) => {
    // The name contains a hash of the content.
    const file = join(directory, `${basename(filename)}.code`)
    const { code, runs } = readCode(file)
    const script = new Script(Module.wrap(readFileSync(filename, "latin1")), {
      filename,
      columnOffset: -wrapperLength,
      cachedData: code,
    })
    if (runs < maxRuns || script.cachedDataRejected) loaded.push({ script, file, runs })
    const run: unknown = script.runInThisContext()
    if (typeof run !== "function") throw new TypeError(`${filename} is not a module.`)
    run(module.exports, createRequire(filename), module, filename, dirname(filename))
  }
  process.once("exit", () => {
    for (const { script, file, runs } of loaded) storeCode(script, file, runs + 1)
  })
}

/** Number of runs that add their functions to a file's stored code. Storing takes about 20 ms. */
const maxRuns = 4

/** Length of the text that `Module.wrap` inserts before the code, in characters. */
const wrapperLength = Module.wrap("\0").indexOf("\0")

/** Length of the fields before the compiled code, in bytes: the checksum of the rest, and the number of runs. */
const headerLength = 8

/** Reads stored code. If the file is missing or damaged, returns no code, because V8 crashes on damaged code. */
function readCode(file: string): { code?: Buffer; runs: number } {
  try {
    const content = readFileSync(file)
    if (content.readUInt32LE(0) === crc32(content.subarray(4)))
      return { code: content.subarray(headerLength), runs: content.readUInt32LE(4) }
  } catch {
    // The file does not exist, cannot be read or is shorter than the header.
  }
  return { runs: 0 }
}

/** Stores the compiled functions of a script. Does nothing if the file cannot be written. */
function storeCode(script: Script, file: string, runs: number): void {
  const temporary = `${file}.${process.pid}`
  const header = Buffer.alloc(headerLength)
  header.writeUInt32LE(runs, 4)
  const content = Buffer.concat([header, script.createCachedData()])
  content.writeUInt32LE(crc32(content.subarray(4)), 0)
  try {
    writeFileSync(temporary, content, { flag: "wx", mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // Ignores the error, because the cache only saves time.
  }
}
