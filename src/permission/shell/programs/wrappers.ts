import type { ProgramTable } from "../program.ts"

/** Programs whose purpose is to run another command. */
export const wrappers: ProgramTable = [
  [
    "sudo",
    {
      wraps: {
        options: "-n -E -H -S -b -k -u: -g: -p: --user= --group= --non-interactive --preserve-env --set-home",
        assigns: true,
      },
      remember: "exact",
    },
  ],
  ["doas", { wraps: { options: "-n -u:" }, remember: "exact" }],
  [
    "env",
    {
      transparent: "without options",
      wraps: {
        options: "-i -0 -u: -C: --ignore-environment --null --unset= --chdir=",
        assigns: true,
        moves: ["-C", "--chdir"],
        splits: true,
      },
      remember: "exact",
    },
  ],
  ["nohup", { transparent: "always", wraps: { options: "" }, remember: "exact" }],
  ["busybox", { wraps: { options: "" }, remember: "exact" }],
  ["setsid", { wraps: { options: "-c -f -w --ctty --fork --wait" } }],
  [
    "nice",
    { transparent: "always", wraps: { options: "-n: --adjustment=", numbers: true }, remember: "exact" },
  ],
  ["ionice", { transparent: "always", wraps: { options: "-c: -n: -t --class= --classdata= --ignore" } }],
  ["taskset", { wraps: { options: "-a -c", operands: 1 } }],
  [
    "timeout",
    {
      transparent: "always",
      wraps: {
        options: "-k: -s: -v --kill-after= --signal= --verbose --foreground --preserve-status",
        operands: 1,
      },
      remember: "exact",
    },
  ],
  ["stdbuf", { transparent: "always", wraps: { options: "-i: -o: -e: --input= --output= --error=" } }],
  ["time", { transparent: "always", wraps: { options: "-p -v", assigns: true }, remember: "exact" }],
  ["coproc", { wraps: { options: "", assigns: true } }],
  ["noglob nocorrect - toybox ld.so", { wraps: { options: "" } }],
  ["caffeinate", { wraps: { options: "-d -i -m -s -u -t:" } }],
  [
    "xargs",
    {
      transparent: "always",
      wraps: {
        options:
          "-0 -r -t -p -x -n: -L: -P: -d: -I: -s: -E: -i? -e? -l? --null --no-run-if-empty --verbose --max-args= --max-procs= --max-lines? --delimiter= --replace?",
        appends: true,
        replaces: ["-I", "-i", "--replace"],
      },
      remember: "exact",
    },
  ],
  ["sh bash dash", { transparent: "always", wraps: "shell", remember: "exact" }],
  // These shells interpret some words differently from bash.
  ["zsh ksh fish", { wraps: "shell", remember: "exact" }],
  [
    "mksh ash rbash hush yash posh lksh oksh loksh pdksh mrsh brush osh bosh rksh rzsh",
    { wraps: "shell", remember: "exact" },
  ],
  [
    "su runuser sg newgrp watch script parallel unshare nsenter chroot chrt prlimit setarch linux32 linux64 i386 i686 x86_64 uname26 strace ltrace gdb lldb flock setpriv capsh runcon firejail bwrap proot fakeroot fakechroot eatmydata faketime entr systemd-run systemd-inhibit rlwrap unbuffer expect pkexec at batch repeat start-stop-daemon daemonize daemon dbus-run-session dbus-launch ssh-agent gpg-agent xvfb-run screen tmux abduco dtach zellij ttyd numactl choom cgexec softlimit chpst envdir setlock setuidgid s6-setuidgid envuidgid gosu su-exec tini dumb-init catchsegv torsocks torify tsocks proxychains proxychains4 trickle ip run-parts run-one cpulimit jobs chronic ifne pee mispipe lckdo sshpass retry tsp nq sem machinectl distrobox toolbox flatpak flatpak-spawn xterm kitty alacritty foot wezterm konsole gnome-terminal x-terminal-emulator memusage heaptrack uftrace csh tcsh rc es nu xonsh elvish pwsh powershell cmd command.com ed red ex tclsh wish",
    { wraps: "unknown" },
  ],
  ["npx pnpx bunx", { runsAfter: "", remember: "exact" }],
  [
    "uvx pipx infisical teller envchain sops pm2 forever ts-node-dev tsnd onchange chokidar npm-run-all run-s run-p start-server-and-test dotenv-run dotenvy hyperfine watchexec nodemon concurrently dotenv dotenvx dotenv-cli cross-env cross-env-shell env-cmd valgrind perf mosh rust-parallel direnv doppler chamber wine",
    { runsAfter: "" },
  ],
  ["pdm hatch rye pixi devbox mamba micromamba op", { runsAfter: "run" }],
  ["asdf aws-vault lxc", { runsAfter: "exec|run" }],
  ["mise rtx", { runsAfter: "exec|x", remember: 2, longer: "run", exact: "set use" }],
  ["nix-shell", { runsAfter: "-c|--command|--run|run" }],
]
