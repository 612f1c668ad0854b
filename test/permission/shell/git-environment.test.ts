import { execFileSync, spawnSync } from "node:child_process"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { hardenedGitEnvironment, repositoryProblem } from "../../../src/permission/shell/git-repository.ts"
import { commandEnvironment } from "../../../src/permission/shell/read-only-proof.ts"
import { temporaryDirectory } from "../support.ts"

const base = { PATH: process.env.PATH ?? "", HOME: "/nonexistent" }

interface Repository {
  directory: string
  marker: string
  /** Leaves the marker. */
  attack: string
  git(...args: string[]): void
}

function createRepository(directory = temporaryDirectory()): Repository {
  const git = (...args: string[]) => {
    const identity = [
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b.test",
      "-c",
      "advice.addEmbeddedRepo=false",
      "-c",
      "maintenance.auto=false",
    ]
    execFileSync("git", [...identity, ...args], {
      cwd: directory,
      env: { ...base, GIT_CONFIG_GLOBAL: "/dev/null" },
      stdio: "pipe",
    })
  }
  git("init", "-q")
  writeFileSync(join(directory, "f.x"), "one\n")
  // Without a different time, git can mistake the two contents for the same file.
  utimesSync(join(directory, "f.x"), 0, 0)
  git("add", ".")
  git("commit", "-qm", "first")
  writeFileSync(join(directory, "f.x"), "two\n")
  const marker = join(directory, ".git", "marker")
  return { directory, marker, attack: `touch ${marker};false`, git }
}

const commands = [
  ["status"],
  ["diff"],
  ["diff", "--stat"],
  ["log", "-p"],
  ["show"],
  ["branch"],
  ["rev-parse", "HEAD"],
]

function runAll({ directory, marker }: Repository, environment: Record<string, string>): boolean {
  for (const command of commands)
    spawnSync("git", command, { cwd: directory, env: { ...base, ...environment } })
  return existsSync(marker)
}

/** `effective`: git alone would run it, so that the test is known to test something. */
const hostile: [name: string, effective: boolean, arrange: (repository: Repository) => void][] = [
  ["a file system monitor", true, ({ git, attack }) => git("config", "core.fsmonitor", attack)],
  ["an external diff", true, ({ git, attack }) => git("config", "diff.external", attack)],
  [
    "a text conversion",
    true,
    ({ git, attack, directory }) => {
      git("config", "diff.x.textconv", attack)
      writeFileSync(join(directory, ".gitattributes"), "*.x diff=x\n")
    },
  ],
  [
    "a diff driver",
    true,
    ({ git, attack, directory }) => {
      git("config", "diff.x.command", attack)
      writeFileSync(join(directory, ".gitattributes"), "*.x diff=x\n")
    },
  ],
  [
    "a clean filter",
    true,
    ({ git, attack, directory }) => {
      git("config", "filter.x.clean", attack)
      writeFileSync(join(directory, ".gitattributes"), "*.x filter=x\n")
    },
  ],
  [
    "an included file",
    true,
    ({ git, attack, directory }) => {
      writeFileSync(
        join(directory, ".git/more"),
        `[core]\n\tfsmonitor = "${attack}"\n[diff]\n\texternal = "${attack}"\n`,
      )
      git("config", "include.path", "more")
    },
  ],
  [
    "two sections on one line",
    true,
    ({ attack, directory }) => {
      writeFileSync(
        join(directory, ".git/config"),
        `[core] bare = false\n[core] [diff] external = "${attack}"\n`,
      )
    },
  ],
  [
    "a signing program",
    false,
    ({ git, attack }) => {
      git("config", "gpg.program", attack)
      git("config", "log.showSignature", "true")
    },
  ],
  ["a pager", false, ({ git, attack }) => git("config", "core.pager", attack)],
  ["an alias", false, ({ git, attack }) => git("config", "alias.status", `!${attack}`)],
  [
    "a hook",
    false,
    ({ directory, attack }) => {
      writeFileSync(join(directory, ".git/hooks/post-index-change"), `#!/bin/sh\n${attack}\n`, {
        mode: 0o755,
      })
    },
  ],
  ["a nested repository", true, (repository) => nest(repository)],
  [
    "a nested repository with .gitmodules",
    true,
    (repository) => {
      nest(repository)
      const module = '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
      writeFileSync(join(repository.directory, ".gitmodules"), module)
    },
  ],
]

function nest({ directory, git, attack }: Repository): void {
  mkdirSync(join(directory, "sub"))
  const inner = createRepository(join(directory, "sub"))
  git("add", "sub")
  git("commit", "-qm", "second")
  inner.git("config", "core.fsmonitor", attack)
}

test.each(hostile)(
  "%s runs nothing: it is switched off, or the repository is not taken for plain",
  async (_, effective, arrange) => {
    const control = createRepository()
    arrange(control)
    if (effective) expect(runAll(control, {})).toBe(true)

    const repository = createRepository()
    arrange(repository)
    const problem = repositoryProblem(repository.directory)
    if (problem === undefined) expect(runAll(repository, hardenedGitEnvironment())).toBe(false)
  },
)

test("finds no problem in a plain repository, below its root and in a linked worktree", async () => {
  const { directory, git } = createRepository()
  git("remote", "add", "origin", "https://example.test/a.git")
  git("worktree", "add", "-q", join(directory, "linked"))
  mkdirSync(join(directory, "src"))
  for (const place of [directory, join(directory, "src"), join(directory, "linked")]) {
    expect(repositoryProblem(place)).toBeUndefined()
  }
})

test("finds no problem outside a repository", async () => {
  expect(repositoryProblem(temporaryDirectory())).toBeUndefined()
})

test.each([
  ["a .git that is no pointer", (directory: string) => writeFileSync(join(directory, ".git"), "what?\n")],
  [
    "a directory that looks like a bare repository",
    (directory: string) => {
      writeFileSync(join(directory, "HEAD"), "ref: refs/heads/main\n")
      mkdirSync(join(directory, "objects"))
    },
  ],
])("%s is not plain", async (_, arrange) => {
  const directory = temporaryDirectory()
  arrange(directory)
  expect(repositoryProblem(directory)).toBeTypeOf("string")
})

/** A repository in which git runs a filter that leaves the marker, whatever the environment. */
function createFiltered(directory: string, marker: string): void {
  const { git } = createRepository(makeDirectory(directory))
  writeFileSync(join(directory, ".git/info/attributes"), "* filter=x\n")
  git("config", "filter.x.clean", `touch '${marker}'; cat`)
}

function makeDirectory(path: string): string {
  mkdirSync(path, { recursive: true })
  return path
}

/** Directories in which git uses another repository than the obvious one. Each returns the directory where git runs. */
const misleading: [name: string, arrange: (directory: string, marker: string) => string][] = [
  [
    "a .git that git passes over, below a repository",
    (directory, marker) => {
      createFiltered(directory, marker)
      makeDirectory(join(directory, "sub/.git"))
      return join(directory, "sub")
    },
  ],
  [
    "a pointer that ends in a carriage return",
    (directory, marker) => {
      createFiltered(join(directory, "place"), marker)
      renameSync(join(directory, "place/.git"), join(directory, "filtered"))
      createRepository(makeDirectory(join(directory, "plain")))
      renameSync(join(directory, "plain/.git"), join(directory, "filtered\r"))
      writeFileSync(join(directory, "place/.git"), "gitdir: ../filtered\r\n")
      return join(directory, "place")
    },
  ],
  [
    "a common directory whose name ends in a blank",
    (directory, marker) => {
      createFiltered(directory, marker)
      renameSync(join(directory, ".git"), join(directory, "filtered "))
      createRepository(makeDirectory(join(directory, "plain")))
      renameSync(join(directory, "plain/.git"), join(directory, "filtered"))
      makeDirectory(join(directory, ".git"))
      for (const name of ["HEAD", "index"])
        copyFileSync(join(directory, "filtered ", name), join(directory, ".git", name))
      writeFileSync(join(directory, ".git/commondir"), "../filtered ")
      return directory
    },
  ],
  [
    "a submodule whose .gitmodules is in the index alone",
    (directory, marker) => {
      const { git } = createRepository(directory)
      createFiltered(join(directory, "sub"), marker)
      const module = '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n'
      writeFileSync(join(directory, ".gitmodules"), module)
      git("add", "sub", ".gitmodules")
      rmSync(join(directory, ".gitmodules"))
      return directory
    },
  ],
]

test.each(misleading)("finds a problem in %s", async (_, arrange) => {
  const marker = join(temporaryDirectory(), "marker")
  const place = arrange(temporaryDirectory(), marker)
  expect(repositoryProblem(place)).toBeTypeOf("string")
  spawnSync("git", ["status"], { cwd: place, env: { ...base, ...hardenedGitEnvironment() } })
  expect(existsSync(marker)).toBe(true)
})

/** Directories in which git shows the files of another repository. */
const foreign: [name: string, arrange: (place: string, other: string) => void][] = [
  ["a pointer", (place, other) => writeFileSync(join(place, ".git"), `gitdir: ${other}\n`)],
  ["a link", (place, other) => symlinkSync(other, join(place, ".git"))],
  [
    "a pointer in a directory that poses as a linked work tree's",
    (place, other) => {
      const posing = makeDirectory(join(place, "x/worktrees/y"))
      writeFileSync(join(place, ".git"), `gitdir: ${posing}\n`)
      writeFileSync(join(posing, "gitdir"), `${join(place, ".git")}\n`)
      writeFileSync(join(posing, "HEAD"), "ref: refs/heads/main\n")
      writeFileSync(join(posing, "commondir"), other)
    },
  ],
  [
    "a link for the objects",
    (place, other) => {
      createRepository(place)
      rmSync(join(place, ".git/objects"), { recursive: true })
      symlinkSync(join(other, "objects"), join(place, ".git/objects"))
    },
  ],
  [
    "a link among the objects",
    (place, other) => {
      createRepository(place)
      symlinkSync(join(other, "objects/pack"), join(place, ".git/objects/zz"))
    },
  ],
  [
    "borrowed objects",
    (place, other) => {
      createRepository(place)
      writeFileSync(join(place, ".git/objects/info/alternates"), `${join(other, "objects")}\n`)
    },
  ],
]

test.each(foreign)(
  "finds a problem where the files of another repository are shown by %s",
  async (_, arrange) => {
    const { directory } = createRepository()
    const place = temporaryDirectory()
    arrange(place, join(directory, ".git"))
    expect(repositoryProblem(place)).toBeTypeOf("string")
  },
)

test("lets the hardened git read", () => {
  const { directory } = createRepository()
  const environment = { ...base, ...hardenedGitEnvironment() }
  for (const command of commands) {
    expect(spawnSync("git", command, { cwd: directory, env: environment, encoding: "utf8" })).toMatchObject({
      status: 0,
      stderr: "",
    })
  }
  const { stdout } = spawnSync("git", ["diff"], { cwd: directory, env: environment, encoding: "utf8" })
  expect(stdout).toContain("+two")
})

test("hardens only a text of proved commands", async () => {
  expect(await commandEnvironment("git status && ls")).toEqual(hardenedGitEnvironment())
  for (const name of ["g''it", "g\\it", "$'\\x67it'"]) {
    expect(await commandEnvironment(`${name} status`)).toEqual(hardenedGitEnvironment())
  }
  expect(await commandEnvironment("git commit -m x")).toEqual({})
  expect(await commandEnvironment("git status && git push")).toEqual({})
  expect(await commandEnvironment("ls")).toEqual({})
})
