import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import { runGit } from "../../src/files/git.ts"
import { temporaryProject } from "../../src/testing/project.ts"

/** Fetches over SSH with a program `ssh` that records its arguments. Returns them. */
async function fetchWith(config: string): Promise<string> {
  const project = await temporaryProject({ ".gitconfig": config, "bin/ssh": "" })
  try {
    writeFileSync(project.path("bin/ssh"), `#!/bin/sh\necho "$@" >> '${project.path("arguments")}'\nexit 1\n`)
    chmodSync(project.path("bin/ssh"), 0o755)
    const environment = { HOME: project.directory, PATH: `${project.path("bin")}:${process.env.PATH}` }
    const fetching = runGit(["ls-remote", "ssh://git@host.example/r.git"], {
      ...{ cwd: project.directory, environment, connects: true },
    })
    await expect(fetching).rejects.toThrow("Could not read from remote repository")
    return readFileSync(project.path("arguments"), "utf8")
  } finally {
    await project.remove()
  }
}

const limits = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"

test("an SSH connection asks nothing and ends when the server does not respond", async () => {
  expect(await fetchWith("")).toContain(`${limits} `)
})

test("the limits of SSH are added to the user's command", async () => {
  const used = await fetchWith("[core]\n\tsshCommand = ssh -i key\n")
  expect(used).toContain(`-i key ${limits} `)
})

test("a command for another program than OpenSSH is not changed", async () => {
  const used = await fetchWith('[core]\n\tsshCommand = \\"$HOME/bin/ssh\\" -agent\n[ssh]\n\tvariant = ssh\n')
  expect(used).toContain("-agent ")
  expect(used).not.toContain("BatchMode")
})
