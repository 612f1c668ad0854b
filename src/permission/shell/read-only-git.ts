import type { ReadOnlyProgram } from "./read-only-program.ts"

/** Subcommands of git beside the usual ones that only read, with the options that keep it so. */
export const readOnlyGit: readonly (readonly [string, ReadOnlyProgram])[] = [
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
