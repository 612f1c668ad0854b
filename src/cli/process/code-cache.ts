import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import Module, { createRequire, getCompileCacheDir } from "node:module"
import { basename, dirname, join } from "node:path"
import { Script } from "node:vm"
import { crc32 } from "node:zlib"

/**
 * Makes `require` load the other files of the bundle with code that was compiled in earlier runs. Node's compile cache
 * stores a file before it runs, so V8 compiles every function again that a run calls. This cache stores a file at the end
 * of a run, with these functions. It uses the directory of Node's cache, and does nothing if that cache is disabled.
 */
export function useCodeCache(): void {
  const directory = getCompileCacheDir()
  if (directory === undefined) return
  const bundle = dirname(import.meta.filename)
  const loaded: LoadedFile[] = []
  const { extensions } = createRequire(import.meta.filename)
  const loadOther = extensions[".js"]

  // All files of the bundle except the entry points have this extension. With a function for `.cjs`, Node would not find
  // the named exports of some packages.
  extensions[".chunk.cjs"] = (module, filename) => {
    if (dirname(filename) !== bundle) return loadOther(module, filename)
    const source = readFileSync(filename, "latin1")
    const file = join(directory, `${basename(filename)}.code`)
    const { code, runs } = readCode(file, source)
    const options = { filename, columnOffset: -wrapperLength, cachedData: code }
    const script = new Script(Module.wrap(source), options)
    const stored = script.cachedDataRejected ? undefined : code
    if (runs < maxRuns || !stored) loaded.push({ script, source, file, runs: runs + 1, stored })
    const run: unknown = script.runInThisContext()
    if (typeof run !== "function") throw new TypeError(`${filename} is not a module.`)
    run(module.exports, createRequire(filename), module, filename, bundle)
  }
  process.once("exit", () => {
    for (const each of loaded) storeCode(each)
    if (loaded.some(({ runs }) => runs === 1)) removeOld(directory)
  })
}

/** A file of the bundle whose compiled code is stored at the end of the run. */
interface LoadedFile {
  script: Script
  source: string
  /** Path for the compiled code. */
  file: string
  /** Number of runs that have stored their code, including this run. */
  runs: number
  /** The code of earlier runs. */
  stored?: Buffer
}

/** Number of runs that add their functions to a file's stored code. Storing takes about 20 ms. */
const maxRuns = 4

/** Age in days at which stored code is removed. Code that is still in use is stored again by the next run. */
const maxDays = 90

/** Removes the code of builds that are no longer used. */
function removeOld(directory: string): void {
  const oldest = Date.now() - maxDays * 24 * 3_600_000
  try {
    for (const name of readdirSync(directory)) {
      const file = join(directory, name)
      if (name.endsWith(".code") && statSync(file).mtimeMs < oldest) rmSync(file)
    }
  } catch {
    // Another process may have removed the file.
  }
}

/** Length of the text that `Module.wrap` inserts before the code, in characters. */
const wrapperLength = Module.wrap("\0").indexOf("\0")

/** Length of the fields before the code, in bytes: a checksum of the source and the rest, and the number of runs. */
const headerLength = 8

/** Reads stored code. If the file is missing, damaged or of another source, returns no code: V8 crashes on such code. */
function readCode(file: string, source: string): { code?: Buffer; runs: number } {
  try {
    const content = readFileSync(file)
    if (content.readUInt32LE(0) === checksum(content.subarray(4), source))
      return { code: content.subarray(headerLength), runs: content.readUInt32LE(4) }
  } catch {
    // The file does not exist, cannot be read or is shorter than the header.
  }
  return { runs: 0 }
}

function checksum(content: Uint8Array, source: string): number {
  return crc32(content, crc32(source))
}

/**
 * Stores the compiled functions of a file. Keeps the stored code if it contains more functions, because V8 discards
 * functions that a long run no longer uses. Does nothing if the code cannot be written.
 */
function storeCode({ script, source, file, runs, stored }: LoadedFile): void {
  const temporary = `${file}.${process.pid}`
  try {
    const fresh = script.createCachedData()
    const code = stored && stored.length > fresh.length ? stored : fresh
    const header = Buffer.alloc(headerLength)
    header.writeUInt32LE(runs, 4)
    const content = Buffer.concat([header, code])
    content.writeUInt32LE(checksum(content.subarray(4), source), 0)
    writeFileSync(temporary, content, { flag: "wx", mode: 0o600 })
    renameSync(temporary, file)
  } catch {
    // The cache only saves time.
    rmSync(temporary, { force: true })
  }
}
