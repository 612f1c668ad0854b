import type { ProgramTable } from "../program.ts"

/** Programs for files, directories and archives. */
export const filePrograms: ProgramTable = [
  [
    "ls",
    {
      operands: "names",
      readOnly:
        "-1 -A -B -C -F -G -H -L -N -Q -R -S -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p -q -r -s -t -u -v -x -I: -T: -w: --all --almost-all --author --classify? --color? --directory --full-time --group-directories-first --hide= --human-readable --ignore= --indicator-style= --inode --no-group --numeric-uid-gid --recursive --reverse --show-control-chars --si --size --sort= --time= --time-style= --width=",
    },
  ],
  [
    "cat",
    {
      operands: "reads",
      readOnly:
        "-A -E -T -b -e -n -s -t -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank",
    },
  ],
  [
    "head",
    {
      operands: "reads",
      selectsLines: "-n --lines",
      numbers: true,
      readOnly: "-c: -n: -q -v -z --bytes= --lines= --quiet --silent --verbose",
    },
  ],
  [
    "tail",
    {
      operands: "reads",
      selectsLines: "-n --lines",
      numbers: true,
      readOnly: "-c: -n: -q -r -v -z --bytes= --lines= --quiet --silent --verbose",
    },
  ],
  ["wc", { operands: "reads", readOnly: "-L -c -l -m -w --bytes --chars --lines --max-line-length --words" }],
  [
    "stat",
    {
      operands: "names",
      readOnly: "-L -c: -f -t -x --dereference --file-system --format= --printf= --terse",
    },
  ],
  [
    "du",
    {
      operands: "names",
      readOnly:
        "-0 -H -L -P -S -a -b -c -d: -h -k -l -m -s -t: -x --all --apparent-size --block-size= --bytes --exclude= --human-readable --max-depth= --one-file-system --si --summarize --threshold= --total",
    },
  ],
  [
    "tree",
    {
      writes: "-o --output",
      valued: "-H -T",
      operands: "reads",
      readOnly:
        "-A -C -D -F -I: -J -L: -N -P: -Q -S -X -a -d -f -g -h -i -n -p -r -s -t -u -v --dirsfirst --du --filelimit= --gitignore --ignore-case --matchdirs --noreport --prune --si",
    },
  ],
  [
    "realpath",
    {
      operands: "names",
      readOnly:
        "-e -m -L -P -q -s -z --canonicalize-existing --canonicalize-missing --no-symlinks --relative-to= --relative-base=",
    },
  ],
  [
    "readlink",
    {
      operands: "names",
      readOnly:
        "-f -e -m -n -q -s -z --canonicalize --canonicalize-existing --canonicalize-missing --no-newline",
    },
  ],
  [
    "df",
    {
      operands: "names",
      readOnly:
        "-a -h -H -i -k -l -m -P -T -t: -x: --all --human-readable --si --inodes --local --print-type --total --type=",
    },
  ],
  [
    "file",
    {
      risks: "-C|--compile -m|--magic-file",
      valued: "-f -F -P -e",
      operands: "reads",
      readOnly:
        "-b -i -h -L -k -N -r -0 --brief --mime --mime-type --mime-encoding --dereference --no-dereference",
    },
  ],
  ["basename", { operands: "text", readOnly: "-a -s: -z --multiple --suffix= --zero" }],
  ["dirname", { operands: "text", readOnly: "-z --zero" }],
  ["which", { operands: "text", readOnly: "-a --all" }],
  [
    "find",
    {
      writes: "-fprint -fprint0 -fprintf -fls",
      risks: "-exec -execdir -ok -okdir",
      inPlace: "-delete",
      singleDash: true,
      operands: "reads",
      readOnly: {
        options:
          "-H -L -P -O1 -O2 -O3 -a -and -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty -executable -false -follow -gid= -group= -iname= -inum= -ipath= -iregex= -links= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -nogroup -not -nouser -o -or -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile= -size= -true -type= -uid= -user= -writable -xdev -xtype=",
        neutral: ["(", ")", "!", ","],
      },
      wraps: "find",
      remember: "exact",
      directories: { when: /^-(?:exec|ok)/, follows: /^-(?:[HP]*L|follow$)/ },
    },
  ],
  [
    "fd fdfind",
    {
      risks: "-x|--exec -X|--exec-batch",
      valued: "-e -t -d -E -c -j -S -o",
      readOnly: {
        options:
          "-0 -1 -E: -F -H -I -L -S: -a -d: -e: -g -i -j: -p -s -t: -u --absolute-path --case-sensitive --color= --exclude= --extension= --fixed-strings --follow --full-path --glob --hidden --ignore-case --max-depth= --max-results= --min-depth= --no-ignore --no-ignore-vcs --size= --type= --unrestricted",
        operands: "names",
      },
      wraps: "fd",
      remember: "exact",
      directories: { when: /^-(?:[A-Za-z]*[xX]|-exec)/ },
    },
  ],
  ["cp", { remember: "exact", directories: {}, operands: "copies", targets: "-t|--target-directory" }],
  ["mv", { remember: "exact", directories: {}, operands: "moves", targets: "-t|--target-directory" }],
  ["ln", { remember: "exact", operands: "links", targets: "-t|--target-directory" }],
  [
    "install",
    {
      risks: "--strip-program",
      valued: "-m -o -g -t -S",
      remember: "exact",
      operands: "copies",
      targets: "-t|--target-directory",
      rewrites: "-d|--directory",
    },
  ],
  ["rm rmdir chmod chown", { remember: "exact", operands: "changes" }],
  ["unlink shred mkdir mkfifo mknod chgrp", { operands: "changes" }],
  [
    "gzip gunzip bzip2 bunzip2 xz unxz",
    { operands: "changes", dryRun: "-c|--stdout|--to-stdout -l|--list -t|--test" },
  ],
  ["tee", { remember: "exact", operands: "edits" }],
  ["truncate touch", { operands: "edits", valued: "-r -d -t -s" }],
  ["dd", { risks: "", operand: /^(?!of=)/, remember: "exact", operandPrefix: "of=" }],
  [
    "tar bsdtar",
    {
      writes: "--index-file --volno-file -g|--listed-incremental",
      risks:
        "-P|--absolute-names|--absolute-paths --checkpoint-action --to-command -I|--use-compress-program --rsh-command --rmt-command -F|--info-script|--new-volume-script -T|--files-from",
      valued: "-X -b -H -L -N -V -K -I -F -g -T",
      leadingBundle: true,
      remember: "exact",
      directories: { follows: /^(?:-?[A-Za-z]*[hL]|--deref)/ },
      targets: "-f|--file",
      into: "-C|--directory",
      spreads: { with: "-x|--extract|--get", anywhere: "-P|--absolute-names|--absolute-paths" },
      dryRun: "-t|--list -d|--diff|--compare",
    },
  ],
  [
    "cpio",
    {
      writes: "-F|--file -O",
      risks: "--rsh-command -o|--create",
      valued: "-H -C",
      operands: "changes",
      into: "-D|--directory",
      spreads: { with: "-i|--extract -p|--pass-through" },
      dryRun: "-t|--list",
    },
  ],
  [
    "zip",
    {
      writes: "-O|--out|--output-file -lf|--logfile-path -b|--temp-path",
      risks: "-T|--test -TT|--unzip-command",
      directories: { followsUnless: /^-(?:[A-Za-z]*y|-sy)/ },
      operands: "first",
      rewrites: "-m|--move",
    },
  ],
  [
    "jar",
    {
      leadingBundle: true,
      targets: "-f|--file",
      into: "-C|--dir",
      spreads: { with: "-x|--extract" },
      dryRun: "-t|--list",
    },
  ],
  [
    "unrar rar",
    {
      actions: {
        a: { operands: "first" },
        e: { operands: "copies", spreads: {} },
        x: { operands: "copies", spreads: {} },
      },
    },
  ],
  // Without one of these options, the program writes files.
  [
    "unzip",
    {
      risks: "-:",
      readOnly: { options: "-l -v -Z -q", operands: "reads", requires: ["-l", "-v", "-Z"] },
      into: "-d",
      spreads: { anywhere: "-:" },
      dryRun: "-l -p -t -v -z -Z -c",
    },
  ],
  [
    "7z 7za 7zz",
    {
      writes: "-o* -w*",
      into: "-o*",
      actions: {
        a: { operands: "first" },
        d: { operands: "first" },
        e: { spreads: {} },
        rn: { operands: "first" },
        u: { operands: "first" },
        x: { spreads: {} },
      },
      risks: "-si* -so*",
      singleDash: true,
      directories: {},
    },
  ],
  ["zcat gzcat", { operands: "reads", readOnly: "" }],
  [
    "zstd",
    {
      writes: "-o --output-dir-flat --output-dir-mirror",
      operands: "changes",
      dryRun: "-c|--stdout -l|--list -t|--test",
    },
  ],
  [
    "patch",
    {
      writes: "-o|--output -r|--reject-file",
      risks: "-e|--ed -B|--prefix -z|--suffix",
      valued: "-p -F -i",
      operands: "changes",
      into: "-d|--directory",
      spreads: { unlessOperands: true },
      dryRun: "--dry-run -C|--check",
    },
  ],
  ["split", { risks: "--filter", valued: "-a -b -C -l -n -t", operands: "copies" }],
  ["csplit", { writes: "-f|--prefix", risks: "-b|--suffix-format", valued: "-n" }],
  [
    "base64",
    {
      writes: "-o|--output",
      readOnly: { options: "-d -i -w: --decode --ignore-garbage --wrap=", operands: "reads" },
    },
  ],
  ["base32 basenc", { writes: "-o|--output", valued: "-w -i" }],
  [
    "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum",
    { operands: "reads", readOnly: "-b -t -z --binary --text --tag --zero" },
  ],
  [
    "xxd",
    {
      risks: "",
      valued: "-c -g -l -o -s -n -R -name",
      singleDash: true,
      maxOperands: 1,
    },
  ],
  [
    "od",
    {
      operands: "reads",
      readOnly: "-A: -c -d -j: -N: -o -t: -v -w? -x --address-radix= --format= --read-bytes= --skip-bytes=",
    },
  ],
  ["hexdump", { operands: "reads", readOnly: "-b -c -C -d -n: -o -s: -v -x" }],
  [
    "strings",
    {
      operands: "reads",
      // `@file` makes the program read further words from a file.
      readOnly: { options: "-a -n: -t: -e: --all --bytes= --radix= --encoding=", operand: /^(?!@)/ },
    },
  ],
  [
    "cmp",
    { operands: "reads", readOnly: "-b -i: -l -n: -s --print-bytes --verbose --bytes= --quiet --silent" },
  ],
]

/** Programs that show or control the system. */
export const systemPrograms: ProgramTable = [
  [
    "date",
    {
      risks: "-s|--set",
      valued: "-f -r",
      operand: /^\+/,
      operands: "text",
      readOnly: {
        options: "-u -R -I? -d: --utc --universal --date= --iso-8601? --rfc-3339= --rfc-email",
        operand: /^\+/,
      },
    },
  ],
  [
    "hostname",
    {
      risks: "-F|--file -b|--boot",
      operand: /^$/,
      readOnly: { options: "-s --short", operands: "text", maxOperands: 0 },
    },
  ],
  ["uname", { operands: "text", readOnly: "-a -s -n -r -v -m -p -i -o --all" }],
  ["whoami arch", { operands: "text", readOnly: { options: "", maxOperands: 0 } }],
  ["id", { operands: "text", readOnly: "-u -g -G -n -r -z --user --group --groups --name" }],
  [
    "free",
    {
      operands: "text",
      readOnly: { options: "-b -k -m -g -h -t -w --human --total --wide", maxOperands: 0 },
    },
  ],
  ["lscpu", { operands: "text", readOnly: { options: "-J --json", maxOperands: 0 } }],
  ["locale", { operands: "text", readOnly: { options: "-a --all-locales", maxOperands: 0 } }],
  ["lsb_release", { operands: "text", readOnly: { options: "-a -c -d -i -r -s -v", maxOperands: 0 } }],
  ["getconf", { operands: "text", readOnly: { options: "", operand: /^\w+$/ } }],
  // Other capability names can run a program that the terminal description specifies.
  ["tput", { operands: "text", readOnly: { options: "", operand: /^(?:cols|lines|colors)$/ } }],
  ["nproc", { operands: "text", readOnly: { options: "--all", maxOperands: 0 } }],
  ["uptime", { operands: "text", readOnly: { options: "-p -s --pretty --since", maxOperands: 0 } }],
  // `sleep` only waits, and the time limit of the call applies.
  ["sleep", { operands: "text", readOnly: { options: "", operand: /^\d+(?:\.\d+)?[smhd]?$/ } }],
  [
    "kill pkill killall mount defaults gsettings dconf launchctl chsh update-alternatives sysctl networksetup scutil",
    { remember: "exact" },
  ],
  ["crontab", { input: { unless: "-l -r -e -V" }, remember: "exact" }],
]
