import { basename } from "node:path"
import { invisibleCharacters } from "../invisible.ts"
import type { PlannedCommand } from "./plan.ts"

/**
 * The pattern that "always" would remember for a command: its program and the words that say what it does, such as
 * `git push *` or `npm run build *`. For programs that run or remove whatever they are given it is the command as it
 * stands. Undefined where no pattern would mean just this: the command is not understood, is made of parts known only
 * when it runs, or holds a `*` or `?` that would become a wildcard.
 */
export function rememberedPattern(command: PlannedCommand): string | undefined {
  const { argv, pattern, opaque, assigns } = command
  if (opaque !== undefined || assigns || /[*?]/.test(pattern) || invisibleCharacters(pattern))
    return undefined
  if (argv.some((word) => word.dynamic || word.glob || /\s/.test(word.text))) return undefined
  const program = argv[0]?.text ?? ""
  if (program.includes("/") || asItStands.has(basename(program))) return pattern

  const words = argv.slice(0, prefixLength(argv.map((word) => word.text))).map((word) => word.text)
  return words.slice(1).some((word) => !/^[\w:@.][\w:@./+-]*$/.test(word)) ? pattern : `${words.join(" ")} *`
}

/** How many words say what a command does. The longest entry that the command starts with counts; else one. */
const prefixLengths: Readonly<Record<string, number>> = {
  ...lengths(
    2,
    "git npm pnpm yarn bun npx pnpx bunx cargo go docker podman kubectl helm make just gh pip pip3 uv poetry pipenv",
  ),
  ...lengths(
    2,
    "dotnet mvn gradle terraform brew apt apt-get dnf systemctl deno composer bundle rake rails mix sbt stack cabal",
  ),
  ...lengths(2, "conda nix swift flutter dart zig rustup nvm corepack turbo nx"),
  "npm run": 3,
  "pnpm run": 3,
  "yarn run": 3,
  "bun run": 3,
  "deno task": 3,
  "npm exec": 3,
  "pnpm exec": 3,
  "uv run": 3,
  "poetry run": 3,
  "bundle exec": 3,
  "composer run": 3,
  "docker compose": 3,
  "docker image": 3,
  "docker container": 3,
  "git remote": 3,
  "git stash": 3,
  "git worktree": 3,
  "gh pr": 3,
  "gh issue": 3,
  "gh run": 3,
  "gh repo": 3,
  "go mod": 3,
  aws: 3,
  gcloud: 3,
  az: 3,
}

/** A prefix of these would allow far more than what was asked. */
const asItStands = new Set([
  "rm",
  "rmdir",
  "mv",
  "dd",
  "chmod",
  "chown",
  "kill",
  "pkill",
  "killall",
  "curl",
  "wget",
  "ssh",
  "scp",
  "rsync",
  "sudo",
  "doas",
  "env",
  "xargs",
  "find",
  "fd",
  "sh",
  "bash",
  "dash",
  "zsh",
  "ksh",
  "fish",
  "python",
  "python3",
  "node",
  "perl",
  "ruby",
  "php",
  "lua",
  "awk",
  "gawk",
  "sed",
  "tar",
  "busybox",
  "timeout",
  "nohup",
  "nice",
  "time",
  "command",
  "exec",
  "npx",
  "pnpx",
  "bunx",
  "osascript",
  "crontab",
  "tee",
  "cp",
  "ln",
  "install",
  "mount",
  "eval",
])

function prefixLength(words: readonly string[]): number {
  for (const count of [2, 1]) {
    const prefix = words.slice(0, count).join(" ")
    if (Object.hasOwn(prefixLengths, prefix)) return prefixLengths[prefix] ?? 1
  }
  return 1
}

function lengths(length: number, names: string): Record<string, number> {
  return Object.fromEntries(names.split(" ").map((name) => [name, length]))
}
