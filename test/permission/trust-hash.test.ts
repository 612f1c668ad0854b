import { symlink } from "node:fs/promises"
import { describe, expect, onTestFinished, test } from "vitest"
import { hashDependencies } from "../../src/permission/trust-hash.ts"
import { temporaryProject } from "../../src/testing/project.ts"

const needing = (...names: string[]) =>
  JSON.stringify({ dependencies: Object.fromEntries(names.map((name) => [name, "1"])) })

/** Creates packages in `node_modules` from the paths of their files. */
async function installed(files: Record<string, string>) {
  const entries = Object.entries(files).map(([path, text]) => [`node_modules/${path}`, text] as const)
  const project = await temporaryProject(Object.fromEntries(entries))
  onTestFinished(() => project.remove())
  const place = (path: string) => project.path(`node_modules/${path}`)
  const shown = (path: string) => path.slice(place("").length)
  return {
    project,
    hash(provided: string[] = [], limits = { files: 100, bytes: 10_000 }) {
      const { roots, contents, ...rest } = hashDependencies(place("a"), provided, limits)
      return { ...rest, roots: roots.map(shown), files: contents.map(([path]) => shown(path)) }
    },
  }
}

describe("hashDependencies", () => {
  test("hashes all needed packages once, as Node resolves them", async () => {
    const { hash } = await installed({
      "a/package.json": needing("b", "@x/c", "own"),
      "a/node_modules/b/package.json": needing("@x/c"),
      "a/node_modules/b/i.mjs": "",
      "a/node_modules/b/i.d.ts": "",
      "a/node_modules/b/README.md": "",
      "b/package.json": needing(),
      "@x/c/package.json": needing("a", "b"),
      "@x/c/deep/i.cjs": "",
      "own/package.json": needing("unseen"),
    })
    expect(hash(["own"])).toMatchObject({
      roots: ["@x/c", "a/node_modules/b", "b"],
      files: [
        "@x/c/package.json",
        "@x/c/deep/i.cjs",
        "a/node_modules/b/i.mjs",
        "a/node_modules/b/package.json",
        "b/package.json",
      ],
      beyond: [],
    })
  })

  test("changes the lines if code is added or changed, but not for other files", async () => {
    const { hash, project } = await installed({
      "a/package.json": needing("b", "later"),
      "b/package.json": needing(),
      "b/i.js": "1",
    })
    const before = hash().lines
    await project.write("node_modules/b/README.md", "more")
    expect(hash().lines).toEqual(before)
    await project.write("node_modules/b/i.js", "2")
    expect(hash().lines).not.toEqual(before)
    await project.write("node_modules/b/i.js", "1")
    await project.write("node_modules/later/package.json", "{}")
    expect(hash().lines).not.toEqual(before)
  })

  test("names packages beyond the limits and hashes smaller ones", async () => {
    const { hash } = await installed({
      "a/package.json": needing("large", "many", "small"),
      "large/package.json": "{}",
      "large/i.js": "x".repeat(20_000),
      "many/package.json": "{}",
      "many/1.js": "",
      "many/2.js": "",
      "small/package.json": "{}",
    })
    expect(hash([], { files: 2, bytes: 10_000 })).toMatchObject({
      roots: ["small"],
      beyond: ["large", "many"],
    })
  })

  test("follows a link to the package", async () => {
    const { hash, project } = await installed({
      "a/package.json": needing("b"),
      ".store/b/package.json": needing(),
    })
    await symlink(".store/b", project.path("node_modules/b"))
    expect(hash().roots).toEqual([".store/b"])
  })
})
