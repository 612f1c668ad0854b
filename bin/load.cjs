"use strict"

const fs = require("node:fs")
const { createRequire, enableCompileCache } = require("node:module")
const path = require("node:path")
const vm = require("node:vm")

/**
 * Runs the command's bundle with what V8 compiled of it in earlier runs.
 *
 * Node's own compile cache keeps a file as it was before it ran: without the functions that were compiled since, because
 * they were called. To compile those again takes a third of a start. So each file is taken here as V8 has it at the end
 * of a run, and kept in `cache`, or where that cannot be written with the person's own data. What V8 does not take is made
 * anew, as is what was written to since, which V8 would believe, and what somebody else could have written. No place for
 * it leaves runs slower and is no fault. `NODE_DISABLE_COMPILE_CACHE` turns it off, as it does Node's.
 *
 * @param {object} options
 * @param {string} options.entry The file to run. Those beside it are found by their names, which change with what the
 *   bundler was given; V8 itself compares no more than the length. So a new build has to come with an empty `cache`.
 * @param {string} options.cache The folder of what is kept.
 */
exports.runBundle = ({ entry, cache }) => {
  const directory = path.dirname(entry)
  const places = process.env.NODE_DISABLE_COMPILE_CACHE ? [] : placesOf(entry, cache)
  const folders = places.map((place) => path.join(place, variant()))
  const [place] = places
  const requireOther = createRequire(entry)
  /** @type {Map<string, { exports: object }>} */
  const modules = new Map()
  /** @type {Map<string, vm.Script>} By the file where it is kept. */
  const scripts = new Map()

  if (place) process.once("exit", () => keepAll({ entry, cache, place, scripts }))
  load(path.basename(entry))

  function load(name) {
    const known = modules.get(name)
    if (known) return known.exports
    const filename = path.join(directory, name)
    const module = { exports: {} }
    modules.set(name, module)
    try {
      const run = compile(name, filename).runInThisContext()
      run(module.exports, requireBeside, module, filename, directory, importOther)
    } catch (error) {
      // As with Node's own modules: whoever asks again is told again.
      modules.delete(name)
      throw error
    }
    return module.exports
  }

  function compile(name, filename) {
    // The bundle is ASCII. To decode it as that is the fastest.
    const source = `${head}${fs.readFileSync(filename, "latin1")}\n})`
    const options = { filename, columnOffset: -head.length }
    // The entry's name does not change with its content; it is a few lines.
    if (!place || filename === entry) return new vm.Script(source, options)
    const files = folders.map((folder) => path.join(folder, `${name}.bin`))
    const script = new vm.Script(source, { ...options, cachedData: readFirst(files) })
    scripts.set(files[0], script)
    return script
  }

  /** What the bundler writes for a file of the bundle begins so, and nothing else of it does. */
  function requireBeside(name) {
    return name.startsWith("./") ? load(name.slice(2)) : requireOther(name)
  }

  /** Scripts have no `import` of their own but an experimental one. The bundler calls this where they do. */
  function importOther(name) {
    if (place && fs.existsSync(place)) enableCompileCache(place)
    return import(name)
  }
}

const head = "(function (exports, require, module, __filename, __dirname, importOther) {"

/** V8 takes what was made by the same version with the same flags alone. */
function variant() {
  const options = [...process.execArgv, process.env.NODE_OPTIONS ?? ""].join(" ").trim()
  const suffix = options === "" ? "" : `-${Buffer.from(options).toString("base64url").slice(-100)}`
  return `${process.version}-${process.platform}-${process.arch}${suffix}`
}

/**
 * Where to look for what is kept; what is new is written to the first. Beside the bundle, unless this user cannot write
 * there or others can. Then it is with the person's own data, which what a model starts cannot write either.
 */
function placesOf(entry, cache) {
  const besides = fs.statSync(cache, { throwIfNoEntry: false })
  const isTrusted = besides === undefined || isOwn(besides)
  if (isTrusted && mayWrite(besides ? cache : path.dirname(cache))) return [cache]
  const own = ownPlace(entry)
  return [...(own && mayBeOwn(own) ? [own] : []), ...(besides && isTrusted ? [cache] : [])]
}

/** False too where it cannot be looked at: the environment of another user names a home that is closed to this one. */
function mayBeOwn(folder) {
  try {
    const stats = fs.statSync(folder, { throwIfNoEntry: false })
    return stats === undefined || isOwn(stats)
  } catch {
    return false
  }
}

/** True if nobody but this user and root can have written it. What is read of it is run. */
function isOwn({ uid, mode }) {
  return (uid === 0 || uid === process.getuid?.()) && (mode & 0o022) === 0
}

function mayWrite(folder) {
  try {
    fs.accessSync(folder, fs.constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** A folder of this build alone in the person's data directory. Undefined where no absolute path says where that is. */
function ownPlace(entry) {
  const { TACKLE_DATA_DIR: given, XDG_DATA_HOME: shared, HOME: home } = process.env
  const data = given || path.join(shared || path.join(home || "", ".local/share"), "tackle")
  if (!path.isAbsolute(data)) return undefined
  const built = fs.statSync(entry).mtimeMs.toString(36)
  return path.join(data, "compiled", `${Buffer.from(entry).toString("base64url").slice(-200)}.${built}`)
}

function readFirst(files) {
  for (const file of files) {
    const compiled = read(file)
    if (compiled) return compiled
  }
  return undefined
}

function read(file) {
  let descriptor
  try {
    descriptor = fs.openSync(file)
    const stats = fs.fstatSync(descriptor)
    return isOwn(stats) && isWhole(stats) ? fs.readFileSync(descriptor) : undefined
  } catch {
    return undefined
  } finally {
    if (descriptor !== undefined) fs.closeSync(descriptor)
  }
}

/**
 * True if the file was not written to since it was kept. V8 looks at the head of what it is given and believes the rest,
 * and to look at every byte would take a tenth of a start. So a file is given a time that no clock gives any more.
 */
function isWhole({ size, mtimeMs }) {
  return mtimeMs === 1000 * timeOf(size)
}

/** In seconds: a time in the years from 2001. It says the size too, and is even, since not every disk keeps odd ones. */
function timeOf(size) {
  return 1_000_000_000 + 2 * size
}

/**
 * So many runs add what they called to what is kept, since each calls something else. The build makes the first four.
 * After that most of it is there, and to write it takes 20 ms.
 */
const learningRuns = 8

function keepAll({ entry, cache, place, scripts }) {
  try {
    const kept = path.join(place, variant())
    // Each run that keeps something leaves a sign.
    const runs = path.join(kept, "runs")
    const learning = (fs.statSync(runs, { throwIfNoEntry: false })?.size ?? 0) < learningRuns
    const wanted = [...scripts].filter(([, script]) => learning || script.cachedDataRejected !== false)
    // Where the bundle is gone, nothing of it is made again.
    if (wanted.length === 0 || !fs.existsSync(entry)) return
    if (place !== cache) makeOwn(place)
    for (const folder of [place, kept]) makeFolder(folder)
    for (const [file, script] of wanted) keep(file, script)
    fs.appendFileSync(runs, ".")
  } catch {
    // Then there is no place for it, now or in the next run.
  }
}

/** The folder of a build, in place of those of the builds before it. */
function makeOwn(place) {
  if (fs.existsSync(place)) return
  const all = path.dirname(place)
  makeFolder(all)
  const [name] = path.basename(place).split(".")
  for (const other of fs.readdirSync(all))
    if (other.startsWith(`${name}.`)) fs.rmSync(path.join(all, other), { recursive: true, force: true })
  makeFolder(place)
}

/** In one that is there: neither a bundle that is gone nor a person's data directory is made by this. */
function makeFolder(folder) {
  if (!fs.existsSync(folder)) fs.mkdirSync(folder, 0o755)
}

/** Whole or not at all. A long run has dropped what it did not need; so what is smaller does not replace what is good. */
function keep(file, script) {
  const compiled = script.createCachedData()
  const stats = fs.statSync(file, { throwIfNoEntry: false })
  const before = script.cachedDataRejected === false && stats && isWhole(stats) ? stats.size : 0
  if (compiled.length <= before) return
  const draft = `${file}.${process.pid}-${Math.random().toString(36).slice(2)}`
  try {
    const descriptor = fs.openSync(draft, "wx", 0o644)
    try {
      fs.writeFileSync(descriptor, compiled)
      const time = timeOf(compiled.length)
      fs.futimesSync(descriptor, time, time)
      fs.fsyncSync(descriptor)
    } finally {
      fs.closeSync(descriptor)
    }
    fs.renameSync(draft, file)
  } catch (error) {
    fs.rmSync(draft, { force: true })
    throw error
  }
}
