/** Programs that run others in ways that the table of wrappers does not model: only `*` allows them. */
export const uncertainWrappers: ReadonlySet<string> = new Set(
  [
    "su runuser sg newgrp watch script parallel unshare nsenter chroot chrt prlimit setarch linux32 linux64 i386 i686 x86_64 uname26",
    "strace ltrace gdb lldb flock setpriv capsh runcon firejail bwrap proot fakeroot fakechroot eatmydata faketime entr",
    "systemd-run systemd-inhibit rlwrap unbuffer expect pkexec at batch repeat start-stop-daemon daemonize daemon",
    "dbus-run-session dbus-launch ssh-agent gpg-agent xvfb-run screen tmux abduco dtach zellij ttyd",
    "numactl choom cgexec softlimit chpst envdir setlock setuidgid s6-setuidgid envuidgid gosu su-exec tini dumb-init catchsegv",
    "torsocks torify tsocks proxychains proxychains4 trickle ip run-parts run-one cpulimit",
    "jobs chronic ifne pee mispipe lckdo sshpass retry tsp nq sem machinectl distrobox toolbox flatpak flatpak-spawn",
    "xterm kitty alacritty foot wezterm konsole gnome-terminal x-terminal-emulator memusage heaptrack uftrace",
    "csh tcsh rc es nu xonsh elvish pwsh powershell cmd command.com ed red ex expect tclsh wish",
  ].flatMap((names) => names.split(" ")),
)

/**
 * Programs that run what they are given, with the words after which it stands; without any it may begin at every word.
 * A rule for the program covers that, for it is what it is used for. A deny of what is run holds all the same.
 */
const runners: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...named(
    "npx pnpx bunx uvx pipx tsx hyperfine watchexec nodemon concurrently dotenv dotenvx dotenv-cli",
    [],
  ),
  ...named(
    "cross-env cross-env-shell env-cmd valgrind perf ssh mosh rust-parallel direnv doppler chamber wine",
    [],
  ),
  ...named("npm pnpm yarn bun", ["exec", "x", "dlx"]),
  ...named("uv poetry pipenv pdm hatch rye conda mamba micromamba rustup nix op", ["run"]),
  ...named("bundle asdf aws-vault kubectl oc docker podman nerdctl lxc", ["exec", "run"]),
  ...named("mise rtx", ["exec", "x"]),
  ...named("nix nix-shell", ["-c", "--command", "--run", "run"]),
  ...named("vagrant", ["-c", "--command"]),
  ...named("git", ["bisect run", "submodule foreach"]),
])

/** The words of a runner that the command it runs is among; undefined where it runs none. */
export function ranWords<T extends { text: string }>(
  name: string,
  words: readonly T[],
): readonly T[] | undefined {
  const marks = runners.get(name)
  if (!marks || marks.length === 0) return marks && words
  const at = words.findIndex(({ text }, index) =>
    marks.some((mark) => mark === text || mark === `${text} ${nextOperand(words, index)}`),
  )
  return at === -1 ? undefined : words.slice(at + 1)
}

function nextOperand(words: readonly { text: string }[], index: number): string | undefined {
  return words.slice(index + 1).find(({ text }) => !text.startsWith("-"))?.text
}

function named(names: string, marks: readonly string[]): [string, readonly string[]][] {
  return names.split(" ").map((name) => [name, marks])
}
