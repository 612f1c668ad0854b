"use strict"

const fs = require("node:fs")
const { createRequire } = require("node:module")
const path = require("node:path")
const vm = require("node:vm")

/**
 * Runs the command's bundle with what V8 compiled of it in an earlier run.
 *
 * Node's own compile cache keeps a file as it was before it ran: without the functions that were compiled since, because
 * they were called. To compile those again takes a third of a start. So each file is taken here as V8 has it at the end
 * of the first run, and kept in `cache`, by the version of Node. What V8 does not take is made anew; a folder that cannot
 * be written leaves runs slower and is no fault.
 *
 * @param {object} options
 * @param {string} options.entry The file to run. Those beside it are found by their names, which tell their content.
 * @param {string} options.cache The folder of what is kept.
 * @param {boolean} [options.renew] True: keeps also what this run adds to what there is.
 */
exports.runBundle = ({ entry, cache, renew = false }) => {
  const directory = path.dirname(entry)
  const kept = path.join(cache, `${process.version}-${process.platform}-${process.arch}`)
  const requireOther = createRequire(entry)
  /** @type {Map<string, { exports: object }>} */
  const modules = new Map()
  /** @type {Map<string, vm.Script>} Scripts to keep, by where. */
  const fresh = new Map()

  process.once("exit", () => {
    try {
      if (fresh.size > 0) fs.mkdirSync(kept, { recursive: true })
      for (const [file, script] of fresh) keep(file, script)
    } catch {
      // Then there is no place for it, now or in the next run.
    }
  })
  load(path.basename(entry))

  function load(name) {
    const known = modules.get(name)
    if (known) return known.exports
    const filename = path.join(directory, name)
    const file = path.join(kept, `${name}.bin`)
    const script = compile(filename, file)
    // The entry's name does not tell its content; it is a few lines.
    if (filename !== entry && (renew || script.cachedDataRejected !== false)) fresh.set(file, script)
    const module = { exports: {} }
    modules.set(name, module)
    script.runInThisContext()(module.exports, requireBeside, module, filename, directory, importOther)
    return module.exports
  }

  /** What the bundler writes for a file of the bundle begins so, and nothing else of it does. */
  function requireBeside(name) {
    return name.startsWith("./") ? load(name.slice(2)) : requireOther(name)
  }
}

/** Scripts have no `import` of their own but an experimental one. The bundler calls this where they do. */
const importOther = (name) => import(name)

const head = "(function (exports, require, module, __filename, __dirname, importOther) {"

function compile(filename, file) {
  // The bundle is ASCII. To decode it as that is the fastest.
  const source = `${head}${fs.readFileSync(filename, "latin1")}\n})`
  return new vm.Script(source, {
    filename,
    columnOffset: -head.length,
    cachedData: readKept(file),
  })
}

function readKept(file) {
  try {
    return fs.readFileSync(file)
  } catch {
    return undefined
  }
}

/** Whole or not at all: V8 looks at the head of what it is given, and believes the rest. Throws what the system says. */
function keep(file, script) {
  const draft = `${file}.${process.pid}`
  try {
    fs.writeFileSync(draft, script.createCachedData(), { flush: true })
    fs.renameSync(draft, file)
  } catch (error) {
    fs.rmSync(draft, { force: true })
    throw error
  }
}
