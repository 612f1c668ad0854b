import type { ReadOnlyProgram } from "./read-only-program.ts"

const gitDiffOptions =
  "-M? -C? -D -R -S: -G: -U: -W -a -b -p -q -s -u -w -z --abbrev? --binary --cached --check --color? --compact-summary --diff-algorithm= --diff-filter= --dirstat? --exit-code --find-copies? --find-renames? --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --ignore-space-change --inter-hunk-context= --merge-base --minimal --name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames --no-textconv --numstat --patch --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? --shortstat --staged --stat? --summary --text --unified= --word-diff? --word-diff-regex="

const gitLogOptions = `${gitDiffOptions} -E -F -L: -c -g -i -m -n: -t --abbrev-commit --after= --all --all-match --ancestry-path --author= --author-date-order --before= --boundary --branches? --cc --cherry-mark --cherry-pick --children --committer= --date-order --date= --decorate? --decorate-refs= --extended-regexp --first-parent --fixed-strings --follow --format= --full-history --graph --grep= --invert-grep --left-right --max-count= --merges --min-parents= --max-parents= --no-abbrev-commit --no-decorate --no-expand-tabs --no-merges --no-notes --not --oneline --parents --perl-regexp --pretty? --regexp-ignore-case --relative-date --remotes? --reverse --right-only --left-only --since= --skip= --source --tags? --topo-order --until= --walk-reflogs`

/** Subcommands of git that only read, with the options that keep it so. `branch` names no branch: that would make one. */
export const readOnlyGit: readonly (readonly [string, ReadOnlyProgram])[] = [
  [
    "status",
    {
      options:
        "-b -s -u? -v -z --ahead-behind --branch --column? --find-renames? --ignored? --long --no-ahead-behind --no-renames --porcelain? --renames --short --show-stash --untracked-files? --verbose",
      operands: "files",
    },
  ],
  ["log", { options: gitLogOptions, operands: "files", numbers: true }],
  ["show", { options: gitLogOptions, operands: "files", numbers: true }],
  ["diff", { options: gitDiffOptions, operands: "files", numbers: true }],
  // Its `-u` means files that git does not track.
  ["stash show", { options: withoutU(gitDiffOptions), operands: "text", maxOperands: 1, numbers: true }],
  ["stash list", { options: gitLogOptions, operands: "text", maxOperands: 0, numbers: true }],
  [
    "branch",
    {
      options:
        "-a -r -v -vv --abbrev? --all --color? --column? --contains= --format= --ignore-case --merged? --no-color --no-column --no-contains= --no-merged? --points-at= --remotes --show-current --sort= --verbose",
      operands: "text",
      maxOperands: 0,
    },
  ],
  [
    "rev-parse",
    {
      options:
        "-q --abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --is-bare-repository --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --quiet --remotes? --short? --show-cdup --show-prefix --show-superproject-working-tree --show-toplevel --symbolic --symbolic-full-name --tags? --verify",
      operands: "files",
    },
  ],
  [
    "ls-files",
    {
      options:
        "-c -d -m -o -i -s -u -z -t -v -x: --cached --deleted --modified --others --ignored --stage --unmerged --exclude= --exclude-standard --full-name --error-unmatch --directory --no-empty-directory",
      operands: "files",
    },
  ],
  [
    "ls-tree",
    { options: "-r -d -t -l -z --name-only --name-status --full-name --full-tree --long", operands: "files" },
  ],
  [
    "blame",
    {
      options: "-L: -b -c -e -f -l -n -p -s -t -w -M? -C? --porcelain --line-porcelain --date= --show-email",
      operands: "files",
    },
  ],
  ["cat-file", { options: "-t -s -e -p", operands: "files" }],
  [
    "rev-list",
    {
      options:
        "-n: --all --after= --author= --before= --branches? --count --first-parent --grep= --left-right --max-count= --merges --no-merges --oneline --parents --reverse --since= --skip= --tags? --topo-order --until=",
      operands: "files",
      numbers: true,
    },
  ],
  ["merge-base", { options: "-a --all --is-ancestor --octopus --fork-point", operands: "files" }],
  [
    "describe",
    {
      options:
        "--all --tags --always --long --abbrev= --match= --exclude= --contains --exact-match --first-parent",
      operands: "files",
    },
  ],
  [
    "show-ref",
    {
      options: "-d -q -s --abbrev? --dereference --head --heads --branches --hash? --quiet --tags --verify",
      operands: "text",
    },
  ],
  [
    "for-each-ref",
    {
      options: "--count= --sort= --format= --contains= --merged= --no-merged= --points-at=",
      operands: "text",
    },
  ],
  [
    "shortlog",
    {
      options: "-c -e -n -s --all --committer --email --numbered --since= --summary --until=",
      operands: "files",
    },
  ],
  ["check-ignore", { options: "-q -v -n --no-index --non-matching --quiet --verbose", operands: "files" }],
  ["count-objects", { options: "-v -H --human-readable --verbose", operands: "text", maxOperands: 0 }],
  ["remote", { options: "-v --verbose", operands: "text", maxOperands: 0 }],
  ["worktree list", { options: "-v -z --porcelain --verbose", operands: "text", maxOperands: 0 }],
  // Without `--list` a name would make a tag.
  [
    "tag",
    {
      options:
        "-l --list -n? --contains? --merged? --no-contains? --no-merged? --points-at= --sort= --format= --column? --no-column",
      operands: "text",
      maxOperands: 0,
    },
  ],
]

function withoutU(options: string): string {
  return options.replace(" -u ", " ")
}
