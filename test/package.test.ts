import { execFile, spawnSync } from "node:child_process"
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { builtinModules } from "node:module"
import { tmpdir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createMachine } from "./cli/run-tackle.ts"
import { isComplete } from "./runs.ts"

const run = promisify(execFile)
const root = resolve(import.meta.dirname, "..")

/** Directory of these tests: `clone` is packed, `project` installs the package. */
const workshop = mkdtempSync(join(tmpdir(), "tackle-package-"))
const project = join(workshop, "project")
const installed = join(project, "node_modules/tackle")
const destination = ["--pack-destination", workshop]
const before = readFileSync(join(root, "package.json"), "utf8")
const manifest = () => JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))

beforeAll(async () => {
  const clone = makeClone("clone")
  const { stdout } = await (isComplete ? npm(clone, "pack", ...destination) : packBuild(clone))
  await run("tar", ["-xzf", join(workshop, stdout.trim().split("\n").at(-1) ?? ""), "-C", workshop])
  mkdirSync(dirname(installed), { recursive: true })
  cpSync(join(workshop, "package"), installed, { recursive: true })
  // Links what npm would install: only the dependencies that the package names.
  for (const name of Object.keys(manifest().dependencies)) linkModule(name)
}, 180_000)

afterAll(() => rmSync(workshop, { recursive: true, force: true, maxRetries: 3 }))

describe("the packed package", () => {
  test("contains the command and the library with types, and no development files", () => {
    const files = filesBelow(installed)
    expect(files).toContain("bin/tackle")
    expect(files).toContain("dist/cli/main.cjs")
    expect(files).toContain("dist/lib/index.d.ts")
    expect(files).toContain("dist/web/index.html")
    expect(files.filter((file) => !/^(bin|dist\/cli|dist\/lib|dist\/web)\//.test(file)).sort()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "package.json",
      "python/tackle_tool.py",
    ])
    expect(files.filter((file) => /\.test\.|(^|\/)\.|(?<!\.d)\.ts$/.test(file))).toEqual([])
  })

  test("contains no path of the machine that packed it", () => {
    const named = filesBelow(installed).filter((file) => {
      // Modules outside of the packed clone exist only here. The bundle names them by relative paths.
      const text = readFileSync(join(installed, file), "latin1").replaceAll(join(root, "node_modules"), "")
      return text.includes(root) || text.includes(workshop)
    })
    expect(named).toEqual([])
  })

  test("contains a command in ASCII, which takes half the memory", () => {
    const chunks = filesBelow(installed).filter((file) => /^dist\/cli\/.*\.cjs$/.test(file))
    expect(chunks.length).toBeGreaterThan(5)
    const text = (file: string) => readFileSync(join(installed, file), "utf8")
    expect(chunks.filter((file) => /[^\0-\x7f]/.test(text(file)))).toEqual([])
  })

  test("depends on exactly the packages that its files import", () => {
    const { dependencies, peerDependencies } = manifest()
    const files = filesBelow(installed).filter((file) => /^dist\/lib\/.*(\.js|\.d\.ts)$/.test(file))
    const imported = new Set(
      files.flatMap((file) =>
        [...readFileSync(join(installed, file), "utf8").matchAll(importedPackage)].map(
          ([, name = ""]) => name,
        ),
      ),
    )
    // The command loads jiti too. Its bundle contains the other packages.
    imported.add("jiti")
    const own = new Set([...Object.keys(peerDependencies), "tackle", "@types/json-schema"])
    expect([...imported].filter((name) => !builtinModules.includes(name) && !own.has(name)).sort()).toEqual(
      Object.keys(dependencies)
        .filter((name) => !own.has(name))
        .sort(),
    )
  })

  test("contains the licenses of the packages in the command", () => {
    const licenses = readFileSync(join(installed, "dist/cli/third-party-licenses.txt"), "utf8")
    for (const name of ["commander", "hono", "highlight.js", "turndown"])
      expect(licenses).toMatch(new RegExp(`^${name} [\\d.]+ \\(.*\\)\n\n.*(License|Copyright)`, "mi"))
  })

  test("works as part of a bundle for Node, without node_modules", async () => {
    writeFileSync(join(project, "program.mjs"), bundledProgram)
    const bundle = await rolldown({
      input: join(project, "program.mjs"),
      platform: "node",
      external: ["ai", "aws4fetch", "pg", "pg-boss", "sharp", "@vscode/ripgrep", "jiti"],
      checks: { ineffectiveDynamicImport: false, eval: false },
      logLevel: "silent",
    })
    const directory = join(workshop, "bundled")
    await bundle.write({ dir: directory, entryFileNames: "[name].mjs", chunkFileNames: "[name].mjs" })
    await bundle.close()
    for (const file of ["tree-sitter-bash.wasm", "web-tree-sitter.wasm", "html-worker.cjs"])
      cpSync(join(installed, "dist/cli", file), join(directory, file))
    const { stdout } = await run(process.execPath, [join(directory, "program.mjs")], { cwd: directory })
    expect(JSON.parse(stdout)).toEqual({
      description: expect.stringContaining("file"),
      read: expect.stringContaining("good day"),
      bash: expect.stringContaining("hello"),
      refused: expect.stringContaining("rm *"),
      webfetch: expect.stringContaining("# Title"),
    })
    rmSync(join(directory, "html-worker.cjs"))
    const missing = await run(process.execPath, [join(directory, "program.mjs")], { cwd: directory })
    expect(missing.stdout).toContain("copy dist/cli/html-worker.cjs of the package tackle")
  })

  test("has no dependency that only a clone needs", () => {
    const { optionalDependencies, devDependencies, scripts, allowScripts, ...rest } = manifest()
    expect({ optionalDependencies, devDependencies, scripts, allowScripts }).toEqual({})
    expect(JSON.stringify(rest)).not.toContain("node-linux")
    const { version, dependencies } = JSON.parse(before)
    expect(rest).toMatchObject({ name: "tackle", version, dependencies })
  })

  test("exports modules with types that can be imported", async () => {
    const keys = Object.keys(manifest().exports)
    expect(keys).toContain("./tool")
    const names = keys.map((key) => join("tackle", key)).filter((name) => !name.endsWith(".json"))
    const script = `for (const name of ${JSON.stringify(names)}) {
      const module = await import(name)
      if (Object.keys(module).length === 0) throw new Error(name + " exports nothing")
      console.log(name)
    }`
    const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project })
    expect(stdout.trim().split("\n")).toEqual(names)
    for (const target of Object.values(manifest().exports)) {
      if (typeof target === "string") continue
      for (const file of Object.values(Object(target)))
        expect(filesBelow(installed)).toContain(join(String(file)))
    }
  })

  test("names the package that PostgreSQL needs, if it is not installed", async () => {
    const url = "postgres://127.0.0.1:1/tackle"
    const script = `const { openPostgresStore } = await import("tackle/store/postgres")
      await openPostgresStore("${url}").catch((error) => console.log(error.code, error.message))`
    const library = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: project })
    expect(library.stdout).toMatch(/^store PostgreSQL needs the package pg.*npm install pg/)
    const machine = await createMachine({ config: null })
    const command: [string, ...string[]] = [join(installed, "bin/tackle")]
    const migrated = await machine.run(["db", "migrate", "--database", url], { command })
    expect(migrated).toMatchObject({ code: 1, stderr: expect.stringContaining("npm install pg") })
  })

  // The compiler is slow on a busy machine.
  const slow = { timeout: 120_000 }

  test("has types for a strict compiler, without the optional packages", slow, async () => {
    cpSync(join(root, "examples/library/main.ts"), join(project, "main.mts"))
    const entries = Object.keys(manifest().exports).filter((key) => !key.endsWith(".json"))
    const imports = entries.map((key, index) => `export * as entry${index} from "${join("tackle", key)}"\n`)
    writeFileSync(join(project, "entries.mts"), imports.join(""))
    linkModule("@types/node")
    const tsc = join(root, "node_modules/typescript/bin/tsc")
    const flags = ["--noEmit", "--strict", "--target", "es2024", "--types", "node"]
    for (const mode of [
      // In CI, one run checks all declarations, because they are the same for both resolutions.
      ["--skipLibCheck", String(!isComplete), "--module", "nodenext"],
      ...(isComplete ? [["--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler"]] : []),
    ]) {
      const args = [tsc, ...flags, ...mode, "main.mts", "entries.mts"]
      const compiled = run(process.execPath, args, { cwd: project })
      const output = await compiled.then(
        () => "",
        (error: { stdout: string }) => error.stdout,
      )
      expect(output).toBe("")
    }
  })

  const oldNode = findOldNode()

  test.skipIf(oldNode === undefined)("names the required version in an older Node (needs one)", async () => {
    const names = Object.keys(manifest().exports).map((key) => join("tackle", key))
    // The client runs in any JavaScript environment.
    const modules = names.filter((each) => !each.endsWith(".json") && each !== join("tackle", "client"))
    const script = `for (const name of ${JSON.stringify(modules)})
      await import(name).then(() => console.log("loaded"), (error) => console.log(String(error)))`
    const { stdout } = await run(oldNode ?? "", ["--input-type=module", "-e", script], { cwd: project })
    const lines = stdout.trim().split("\n")
    expect(lines).toHaveLength(modules.length)
    for (const line of lines)
      expect(line).toMatch(/^Error: Tackle requires Node\.js 24\.15 or newer, but this is v\d/)
  })

  test("has a command that works and prints its version", async () => {
    const command: [string, ...string[]] = [join(installed, "bin/tackle")]
    const machine = await createMachine({ config: null, files: { "hello.txt": "good day\n" } })
    const env = { PATH: `${dirname(process.execPath)}:${process.env.PATH}` }
    const version = await machine.run(["--version"], { command, env })
    expect(version).toMatchObject({ code: 0, stdout: `${JSON.parse(before).version}\n`, stderr: "" })
    const read = await machine.run(["run", "read hello.txt"], { command, env })
    expect(read).toMatchObject({ code: 0, stdout: expect.stringContaining("good day") })
    const searched = await machine.run(["run", "find day"], { command, env })
    expect(searched).toMatchObject({ code: 0, stdout: expect.stringContaining("hello.txt") })
  })
})

describe("scripts/prepare.ts", () => {
  test("does not build a built clone again that another project installs", async () => {
    const clone = makeClone("prepared", ["package.json", "scripts"])
    mkdirSync(join(clone, "dist"))
    const prepare = (installer: string) =>
      run(process.execPath, [join(clone, "scripts/prepare.ts")], {
        env: { ...process.env, INIT_CWD: installer },
      })
    await prepare(project)
    expect(readdirSync(join(clone, "dist"))).toEqual([])
    // This clone has no sources, so a build fails.
    await expect(prepare(clone)).rejects.toThrow("main.ts")
    rmSync(join(clone, "dist"), { recursive: true })
    await expect(prepare(project)).rejects.toThrow("main.ts")
  })
})

describe("scripts/pack.ts", () => {
  const packed = ["package.json", "scripts"]

  test("leaves package.json unchanged after packing", () => {
    expect(readFileSync(join(workshop, "clone/package.json"), "utf8")).toBe(before)
    expect(readdirSync(join(workshop, "clone"))).not.toContain("package.json.full")
  })

  test("repairs package.json after an interrupted pack", async () => {
    const clone = makeClone("broken-off", packed)
    await pack(clone, "strip")
    expect(readFileSync(join(clone, "package.json"), "utf8")).not.toContain("node-linux")
    await pack(clone, "strip")
    await pack(clone, "restore")
    expect(readFileSync(join(clone, "package.json"), "utf8")).toBe(before)
    await pack(clone, "restore")
    expect(readFileSync(join(clone, "package.json"), "utf8")).toBe(before)
  })

  test("keeps a change that was made meanwhile", async () => {
    const clone = makeClone("changed", packed)
    await pack(clone, "strip")
    cpSync(join(root, "biome.json"), join(clone, "package.json"))
    await expect(pack(clone, "restore")).rejects.toThrow("changed while it was stripped")
    expect(readFileSync(join(clone, "package.json.full"), "utf8")).toBe(before)
  })

  test("refuses to publish the directory", async () => {
    const clone = makeClone("published", packed)
    await expect(pack(clone, "strip", { npm_command: "publish" })).rejects.toThrow("instead of the directory")
    expect(readFileSync(join(clone, "package.json"), "utf8")).toBe(before)
  })
})

/** Matches the name of a package, or of a module of Node, in an import. */
const importedPackage =
  /(?:\bfrom|\bimport|\brequire|\bimport\()[ (]*"((?!node:)(?:@[\w.-]+\/)?[\w-][\w.-]*)(?:\/[^"]*)?"/g

/** Calls tools that need a text, a grammar and a worker thread, and prints the results. */
const bundledProgram = `
  import { createServer } from "node:http"
  import { writeFileSync } from "node:fs"
  import { createTackle } from "tackle"
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html")
    response.end("<h1>Title</h1>")
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  writeFileSync("hello.txt", "good day")
  const permission = { "*": "allow", private_network: { "127.0.0.1": "allow" }, bash: { "*": "allow", "rm *": "deny" } }
  const tackle = await createTackle({ directory: ".", permission, sandbox: "off" })
  const call = async (tool, input) => {
    const { state } = await tackle.callTool({ tool, input })
    return state.output ?? state.error
  }
  const url = "http://127.0.0.1:" + server.address().port
  const tools = await tackle.tools()
  const results = {
    description: tools.find(({ id }) => id === "read").description,
    read: await call("read", { filePath: "hello.txt" }),
    bash: await call("bash", { command: "ls", description: "List" }),
    refused: await call("bash", { command: "true && rm hello.txt", description: "Remove" }),
    webfetch: await call("webfetch", { url, format: "markdown" }),
  }
  console.log(JSON.stringify(results))
  await tackle.close()
  server.close()
`

/** Copies entries of the working tree, by default everything except build output. */
function makeClone(name: string, entries = readdirSync(root)): string {
  const clone = join(workshop, name)
  const left = new Set([".git", "dist", "node_modules"])
  mkdirSync(clone)
  for (const entry of entries) {
    if (left.has(entry) || entry.startsWith(".dist-")) continue
    cpSync(join(root, entry), join(clone, entry), { recursive: true })
  }
  symlinkSync(join(root, "node_modules"), join(clone, "node_modules"))
  return clone
}

/** Packs the existing build. In CI, `npm pack` builds again, which takes longer than all tests of this file. */
async function packBuild(clone: string) {
  cpSync(join(root, "dist"), join(clone, "dist"), { recursive: true })
  await pack(clone, "strip")
  const packed = await npm(clone, "pack", "--ignore-scripts", ...destination)
  await pack(clone, "restore")
  return packed
}

function pack(clone: string, command: string, env: Record<string, string> = {}) {
  return run(process.execPath, [join(clone, "scripts/pack.ts"), command], { env: { ...process.env, ...env } })
}

function npm(cwd: string, ...args: string[]) {
  const env = { ...process.env, npm_config_cache: join(workshop, "npm"), npm_config_update_notifier: "false" }
  return run("npm", [...args, "--offline"], { cwd, env })
}

function linkModule(name: string): void {
  const target = join(project, "node_modules", name)
  mkdirSync(dirname(target), { recursive: true })
  symlinkSync(join(root, "node_modules", name), target)
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
}

/** Returns a Node on the PATH that is too old but has module support, if there is one. */
function findOldNode(): string | undefined {
  const nodes = (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, "node"))
  return nodes.find((path) => {
    const { stdout = "" } = spawnSync(path, ["--version"], { encoding: "utf8" })
    const major = Number(/^v(\d+)/.exec(stdout ?? "")?.[1])
    return major >= 18 && major < 24
  })
}
