import type { ReadOnlyProgram } from "./read-only-program.ts"

/** The programs that agents look around with most: what they take, where that keeps them to reading. */
export const readOnlyBasics: readonly (readonly [string, ReadOnlyProgram])[] = [
  ["true", text("")],
  ["pwd", text("-L -P")],
  ["whoami", { ...text(""), maxOperands: 0 }],
  ["uname", text("-a -s -n -r -v -m -p -i -o --all")],
  ["which", text("-a --all")],
  ["basename", text("-a -s: -z --multiple --suffix= --zero")],
  ["dirname", text("-z --zero")],
  ["echo", text("-n -e -E")],
  [
    "date",
    {
      ...text("-u -R -I? -d: --utc --universal --date= --iso-8601? --rfc-3339= --rfc-email"),
      operand: /^\+/,
    },
  ],
  ["cd", { options: "", operands: "files", maxOperands: 1 }],
  [
    "ls",
    {
      options:
        "-1 -A -B -C -F -G -H -L -N -Q -R -S -U -X -Z -a -b -c -d -f -g -h -i -k -l -m -n -o -p -q -r -s -t -u -v -x -I: -T: -w: --all --almost-all --author --classify? --color? --directory --full-time --group-directories-first --hide= --human-readable --ignore= --indicator-style= --inode --no-group --numeric-uid-gid --recursive --reverse --show-control-chars --si --size --sort= --time= --time-style= --width=",
      operands: "files",
    },
  ],
  [
    "cat",
    {
      options:
        "-A -E -T -b -e -n -s -t -u -v --number --number-nonblank --show-all --show-ends --show-nonprinting --show-tabs --squeeze-blank",
      operands: "files",
    },
  ],
  [
    "head",
    {
      options: "-c: -n: -q -v -z --bytes= --lines= --quiet --silent --verbose",
      operands: "files",
      numbers: true,
    },
  ],
  [
    "tail",
    {
      options: "-c: -n: -q -r -v -z --bytes= --lines= --quiet --silent --verbose",
      operands: "files",
      numbers: true,
    },
  ],
  ["wc", { options: "-L -c -l -m -w --bytes --chars --lines --max-line-length --words", operands: "files" }],
  [
    "sort",
    {
      options:
        "-C -M -R -V -b -c -d -f -g -h -i -k: -n -r -s -t: -u -z --check? --dictionary-order --field-separator= --general-numeric-sort --human-numeric-sort --ignore-case --ignore-leading-blanks --key= --month-sort --numeric-sort --reverse --stable --unique --version-sort --zero-terminated",
      operands: "files",
    },
  ],
  [
    "uniq",
    {
      options:
        "-D -c -d -f: -i -s: -u -w: -z --check-chars= --count --ignore-case --repeated --skip-chars= --skip-fields= --unique --zero-terminated",
      operands: "files",
      maxOperands: 1,
      // Where options end at the first operand, an option behind it is the file that is written.
      stopsAtOperand: true,
    },
  ],
  [
    "stat",
    { options: "-L -c: -f -t -x --dereference --file-system --format= --printf= --terse", operands: "files" },
  ],
  [
    "du",
    {
      options:
        "-0 -H -L -P -S -a -b -c -d: -h -k -l -m -s -t: -x --all --apparent-size --block-size= --bytes --exclude= --human-readable --max-depth= --one-file-system --si --summarize --threshold= --total",
      operands: "files",
    },
  ],
  [
    "tree",
    {
      options:
        "-A -C -D -F -I: -J -L: -N -P: -Q -S -X -a -d -f -g -h -i -n -p -r -s -t -u -v --dirsfirst --du --filelimit= --gitignore --ignore-case --matchdirs --noreport --prune --si",
      operands: "files",
    },
  ],
  [
    "diff",
    {
      options:
        "-B -C: -E -N -U: -W: -Z -a -b -c -d -e -i -n -p -q -s -t -u -w -y --brief --color? --context? --ignore-all-space --ignore-blank-lines --ignore-case --ignore-space-change --minimal --new-file --report-identical-files --side-by-side --strip-trailing-cr --suppress-common-lines --text --unified? --width=",
      operands: "files",
      recursive: "always",
      followsLinks: true,
    },
  ],
  [
    "grep",
    {
      options:
        "-A: -B: -C: -E -F -G -H -I -L -P -T -Z -a -b -c -e: -h -i -l -m: -n -o -q -r -s -v -w -x -z --after-context= --basic-regexp --before-context= --binary-files= --color? --colour? --context= --count --exclude-dir= --exclude= --extended-regexp --files-with-matches --files-without-match --fixed-strings --ignore-case --include= --invert-match --line-number --line-regexp --max-count= --no-filename --no-messages --null --only-matching --perl-regexp --quiet --recursive --regexp= --silent --text --with-filename --word-regexp",
      operands: "pattern, then files",
      recursive: ["-r", "--recursive"],
      numbers: true,
    },
  ],
  [
    "rg",
    {
      options:
        "-A: -B: -C: -F -H -I -M: -N -P -S -T: -U -c -d: -e: -g: -i -l -m: -n -o -p -q -r: -s -t: -v -w -x -. --after-context= --before-context= --case-sensitive --color= --column --context= --count --count-matches --files --files-with-matches --files-without-match --fixed-strings --glob= --heading --hidden --ignore-case --iglob= --invert-match --json --line-number --line-regexp --max-columns= --max-count= --max-depth= --multiline --multiline-dotall --no-filename --no-heading --no-line-number --no-messages --only-matching --pcre2 --pretty --quiet --regexp= --replace= --smart-case --sort= --sortr= --stats --trim --type= --type-list --type-not= --vimgrep --with-filename --word-regexp",
      operands: "pattern, then files",
      recursive: "always",
      hidden: ["-.", "--hidden"],
      unhides: true,
    },
  ],
  [
    "find",
    {
      options:
        "-H -L -P -O1 -O2 -O3 -a -and -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -empty -executable -false -follow -gid= -group= -iname= -inum= -ipath= -iregex= -links= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -nogroup -not -nouser -o -or -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile= -size= -true -type= -uid= -user= -writable -xdev -xtype=",
      operands: "files",
      singleDash: true,
      neutral: ["(", ")", "!", ","],
    },
  ],
]

function text(options: string): ReadOnlyProgram {
  return { options, operands: "text" }
}
