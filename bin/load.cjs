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
 * of a run, and kept in `cache`. What V8 does not take is made anew; a folder that cannot be written leaves runs slower
 * and is no fault. `NODE_DISABLE_COMPILE_CACHE` turns it off, as it does Node's.
 *
 * @param {object} options
 * @param {string} options.entry The file to run. Those beside it are found by their names, which change with what the
 *   bundler was given; V8 itself compares no more than the length. So a new build has to come with an empty `cache`.
 * @param {string} options.cache The folder of what is kept.
 */
exports.runBundle = ({ entry, cache }) => {
  const directory = path.dirname(entry)
  const kept = process.env.NODE_DISABLE_COMPILE_CACHE ? undefined : path.join(cache, variant())
  const requireOther = createRequire(entry)
  /** @type {Map<string, { exports: object }>} */
  const modules = new Map()
  /** @type {Map<string, vm.Script>} By the file where it is kept. */
  const scripts = new Map()

  if (kept) process.once("exit", () => keepAll({ entry, kept, scripts }))
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
    if (!kept || filename === entry) return new vm.Script(source, options)
    const file = path.join(kept, `${name}.bin`)
    const script = new vm.Script(source, { ...options, cachedData: read(file) })
    scripts.set(file, script)
    return script
  }

  /** What the bundler writes for a file of the bundle begins so, and nothing else of it does. */
  function requireBeside(name) {
    return name.startsWith("./") ? load(name.slice(2)) : requireOther(name)
  }

  /** Scripts have no `import` of their own but an experimental one. The bundler calls this where they do. */
  function importOther(name) {
    if (kept) enableCompileCache(cache)
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

function read(file) {
  try {
    return fs.readFileSync(file)
  } catch {
    return undefined
  }
}

/**
 * So many runs add what they called to what is kept, since each calls something else. The build makes the first four.
 * After that most of it is there, and to write it takes 20 ms.
 */
const learningRuns = 8

function keepAll({ entry, kept, scripts }) {
  try {
    // Each run that keeps something leaves a sign.
    const runs = path.join(kept, "runs")
    const learning = (fs.statSync(runs, { throwIfNoEntry: false })?.size ?? 0) < learningRuns
    const wanted = [...scripts].filter(([, script]) => learning || script.cachedDataRejected !== false)
    // Where the bundle is gone, nothing of it is made again.
    if (wanted.length === 0 || !fs.existsSync(entry)) return
    for (const folder of [path.dirname(kept), kept]) if (!fs.existsSync(folder)) fs.mkdirSync(folder)
    for (const [file, script] of wanted) keep(file, script)
    fs.appendFileSync(runs, ".")
  } catch {
    // Then there is no place for it, now or in the next run.
  }
}

/**
 * Whole or not at all: V8 looks at the head of what it is given, and believes the rest. A long run has dropped what it
 * did not need any more; so what is smaller does not replace what is good.
 */
function keep(file, script) {
  const compiled = script.createCachedData()
  const before =
    script.cachedDataRejected === false ? (fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0) : 0
  if (compiled.length <= before) return
  const draft = `${file}.${process.pid}-${Math.random().toString(36).slice(2)}`
  try {
    fs.writeFileSync(draft, compiled, { flag: "wx", flush: true })
    fs.renameSync(draft, file)
  } catch (error) {
    fs.rmSync(draft, { force: true })
    throw error
  }
}
