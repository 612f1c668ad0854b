import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { PermissionConfig } from "../../../src/permission/rules.ts"
import { realPath } from "../../../src/util/paths.ts"
import { temporaryDirectory, verdictOf } from "../support.ts"

const rules: PermissionConfig = {
  bash: { "*": "allow", "sed -i *": "allow", "curl -o *": "allow", "dd of=*": "allow" },
  edit: { "*": "allow", "src/v3/*": "deny" },
  external_directory: "allow",
}

function createWorktree(worktree = temporaryDirectory()): string {
  mkdirSync(join(worktree, "src/v3"), { recursive: true })
  for (const file of ["a.ts", "src/b.ts", "src/v3/c.ts"]) writeFileSync(join(worktree, file), "x\n")
  symlinkSync("src/v3", join(worktree, "link"))
  const git = (...args: string[]) => execFileSync("git", args, { cwd: worktree, stdio: "ignore" })
  git("init", "-q")
  git("add", "-A")
  git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x")
  return worktree
}

/** A verdict changes no file, so the cases share one worktree. */
let shared = ""
beforeAll(() => {
  shared = createWorktree(realPath(mkdtempSync(join(tmpdir(), "tackle-written-"))))
})
afterAll(() => rmSync(shared, { recursive: true, force: true }))

const verdict = async (command: string, worktree = shared) =>
  (await verdictOf(rules, "bash", command, { worktree })).action

describe("a denied path", () => {
  it.each([
    "cp a.ts src/v3/c.ts",
    "cp a.ts src/v3",
    "cp -t src/v3 a.ts",
    "cp --target-directory=src/v3 a.ts",
    "mv src/v3/c.ts a.ts",
    "mv a.ts src/v3/",
    "ln -s a.ts src/v3/d.ts",
    "install -m 644 a.ts src/v3/c.ts",
    "sed -i s/x/y/ src/v3/c.ts",
    "sed -i -e s/x/y/ a.ts src/v3/c.ts",
    "perl -i -pe s/x/y/ src/v3/c.ts",
    "tee src/v3/c.ts",
    "dd if=a.ts of=src/v3/c.ts",
    "rm src/v3/c.ts",
    "rm src/v3/*.ts",
    "chmod +x src/v3/c.ts",
    "curl -o src/v3/c.ts https://example.com",
    "sort -o src/v3/c.ts a.ts",
    "git checkout -- src/v3/c.ts",
    "git restore src/v3/c.ts",
    "git rm src/v3/c.ts",
    "cd src && cp ../a.ts v3/c.ts",
    "timeout 5 cp a.ts src/v3/c.ts",
    "/bin/cp a.ts src/v3/c.ts",
    "echo x > src/v3/c.ts",
    "cp a.ts link",
    "cp -r src/. src/v3/",
    "cd src/v3 && cp ../../a.ts .",
    "mv src/v3 other",
    "git mv src/v3 other",
    "git mv a.ts src/v3",
    "git -C src/v3 checkout -- c.ts",
    "git clone https://example.com/x.git src/v3/x",
    "cd src/v3 && git clone https://example.com/x.git",
    "git clean -fd src/v3",
    "rm -r src/v3",
    "find src/v3 -delete",
    "tar -cf src/v3/a.tar a.ts",
    "tar xf a.tar -C src/v3",
    "cd src/v3 && tar xzf ../../a.tgz",
    "unzip a.zip -d src/v3",
    "zip -r src/v3/a.zip a.ts",
    "curl -O --output-dir src/v3 https://example.com/x",
    "cd src/v3 && curl -sSLO https://example.com/x",
    "cd src/v3 && wget -q https://example.com/x",
    "wget -P src/v3 https://example.com/x",
    "split a.ts src/v3/part-",
    "uniq a.ts src/v3/c.ts",
    "install -d src/v3/sub",
    "gawk -i inplace '{print}' src/v3/c.ts",
    "rsync -a src/ src/v3",
    "rsync --remove-source-files src/v3/c.ts out/",
    "prettier --write src/v3/c.ts",
    "npx prettier@3 --write src/v3",
    "pnpm prettier -w src/v3",
    "npm exec -- eslint --fix src/v3/c.ts",
    "gofmt -l -w src/v3",
    "rustfmt src/v3/c.rs",
    "python3 -m black src/v3",
    "uv run ruff format src/v3",
    "cd src/v3 && ruff check --fix",
  ])("is denied for %s", async (command) => {
    expect(await verdict(command)).toBe("deny")
  })

  it.each([
    "rm -r src",
    "mv src other",
    "rm -r .",
    "cp -r src/. src",
    'cp a.ts "$TARGET"',
    "find src -exec rm {} +",
    "tar -xf a.tar -C src",
    "git checkout -- .",
    "tar -xf a.tar",
    "tar xf a.tar --directory=src",
    "unzip -o a.zip",
    "7z x a.7z",
    "cpio -id < a.cpio",
    "patch -p1 < a.patch",
    "patch -d src -p1 -i a.patch",
    "wget -r https://example.com/",
    "curl -O -J https://example.com/x",
    "git stash",
    "git stash pop",
    "git reset --hard HEAD~1",
    "git checkout main",
    "git checkout -b new origin/main",
    "git switch -",
    "git clean -fd",
    "git restore .",
    "git merge main",
    "git pull --rebase",
    "git rebase main",
    "git cherry-pick abc",
    "git revert HEAD",
    "git apply a.patch",
    "git -C src stash",
    "ln src/v3/c.ts b.ts",
    "ln -s src/v3 b",
    "rsync -a --delete lib/ src",
    "prettier --write .",
    "prettier -w 'src/**/*.ts'",
    "npx eslint . --fix",
    "black src",
    "ruff format",
    "cargo fmt",
    "go fmt ./...",
    "terraform fmt -recursive",
    "find src -name '*.ts' -delete",
    "some-generator --out=src/v3",
    "some-generator -o src/v3/c.ts",
    "python3 -c \"open('src/v3/c.ts', 'w')\"",
    "sed -n 'w src/v3/c.ts' a.ts",
    "python3 -m venv src/v3/venv",
  ])("asks for %s, which may write it", async (command) => {
    expect(await verdict(command)).toBe("ask")
  })

  it.each([
    "cp a.ts src/b.ts",
    "cp a.ts src",
    "cp src/v3/c.ts a.ts",
    "mv a.ts src/d.ts",
    "sed -n s/x/y/p src/v3/c.ts",
    "sed -i s/x/y/ a.ts",
    "cat src/v3/c.ts",
    "rm src/b.ts",
    "git checkout -b new",
    "git checkout -- a.ts",
    "git checkout HEAD -- a.ts",
    "git checkout a.ts",
    "git switch -c new",
    "git restore a.ts",
    "git restore --staged src/v3/c.ts",
    "git rm --cached src/v3/c.ts",
    "git reset",
    "git reset --soft HEAD~1",
    "git stash list",
    "git stash drop",
    "git clean -nd",
    "git apply --check a.patch",
    "git add src/v3/c.ts",
    "git commit -am x",
    "git clone https://example.com/x.git",
    "git mv a.ts b.ts",
    "tar -tf a.tar",
    "tar czf out.tgz src/v3",
    "zip -r out.zip src",
    "unzip -l a.zip",
    "gzip -c src/v3/c.ts",
    "curl -O https://example.com/x",
    "wget https://example.com/x",
    "patch --dry-run -p1 < a.patch",
    "patch a.ts a.patch",
    "rsync -a src/v3/ out/",
    "rsync -an lib/ src/v3",
    "prettier --check src",
    "npx prettier --write a.ts",
    "npx vitest run src/v3/c.test.ts",
    "eslint src --ignore-pattern src/v3",
    "black --check src",
    "ruff format --check .",
    "gofmt -l .",
    "node src/v3/c.ts",
    "python3 src/v3/c.py",
    "some-checker --exclude src/v3 .",
  ])("does not stop %s", async (command) => {
    expect(await verdict(command)).toBe("allow")
  })

  it("does not stop git from changing tracked files if none of them is denied", async () => {
    const worktree = createWorktree()
    execFileSync("git", ["rm", "-rq", "--cached", "src/v3"], { cwd: worktree })
    expect(await verdict("git stash && git checkout main", worktree)).toBe("allow")
    expect(await verdict("git clean -fdx", worktree)).toBe("ask")
  })

  it.each([
    ["some-checker a.ts", "allow"],
    ["some-checker --config a.json .", "allow"],
    ["rm a.ts", "deny"],
    ["cd src && tar xf a.tar", "deny"],
    ["cp a.ts src/b.ts", "allow"],
  ])("with a deny of everything but src/b.ts, the verdict on %s is %s", async (command, expected) => {
    const permission: PermissionConfig = { ...rules, edit: { "*": "deny", "src/b.ts": "allow" } }
    expect((await verdictOf(permission, "bash", command, { worktree: shared })).action).toBe(expected)
  })

  it("asks before git changes files of an unknown repository", async () => {
    const worktree = temporaryDirectory()
    expect(await verdict("git reset --hard", worktree)).toBe("ask")
    expect(await verdict("cd other && git reset --hard", worktree)).toBe("allow")
  })
})
