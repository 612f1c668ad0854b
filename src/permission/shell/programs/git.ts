import type { ProgramTable } from "../program.ts"

const diffOptions =
  "-M? -C? -D -R -S: -G: -U: -W -a -b -p -q -s -u -w -z --abbrev? --binary --cached --check --color? --compact-summary --diff-algorithm= --diff-filter= --dirstat? --exit-code --find-copies? --find-renames? --full-index --function-context --histogram --ignore-all-space --ignore-blank-lines --ignore-space-at-eol --ignore-space-change --inter-hunk-context= --merge-base --minimal --name-only --name-status --no-color --no-ext-diff --no-patch --no-prefix --no-renames --no-textconv --numstat --patch --patch-with-stat --patience --pickaxe-all --pickaxe-regex --quiet --raw --relative? --shortstat --staged --stat? --summary --text --unified= --word-diff? --word-diff-regex="

const logOptions = `${diffOptions} -E -F -L: -c -g -i -m -n: -t --abbrev-commit --after= --all --all-match --ancestry-path --author= --author-date-order --before= --boundary --branches? --cc --cherry-mark --cherry-pick --children --committer= --date-order --date= --decorate? --decorate-refs= --extended-regexp --first-parent --fixed-strings --follow --format= --full-history --graph --grep= --invert-grep --left-right --max-count= --merges --min-parents= --max-parents= --no-abbrev-commit --no-decorate --no-expand-tabs --no-merges --no-notes --not --oneline --parents --perl-regexp --pretty? --regexp-ignore-case --relative-date --remotes? --reverse --right-only --left-only --since= --skip= --source --tags? --topo-order --until= --walk-reflogs`

/** Programs for version control. */
export const gitPrograms: ProgramTable = [
  [
    "git",
    {
      startsIn: "-C",
      writes: "--output",
      risks:
        "-c --config-env --exec-path --git-dir --work-tree -p|--paginate --ext-diff --textconv --filters --show-signature --open-files-in-pager",
      valued: "-C -c --git-dir --work-tree --namespace --super-prefix",
      // URLs such as `ext::…` name a program that acts as the remote.
      operand: /^(?![\w+-]+::)/,
      riskySubcommands:
        "config difftool mergetool filter-branch bisect submodule daemon send-email instaweb credential hook maintenance p4 svn cvsserver remote-ext remote-fd fast-import merge-index merge-one-file web--browse shell http-backend upload-pack receive-pack upload-archive for-each-repo bugreport diagnose credential-store credential-cache mailsplit column checkout-index",
      subcommands: {
        difftool: { risks: "-x|--extcmd -t|--tool" },
        clone: {
          writes: "--separate-git-dir",
          risks:
            "-c|--config --template --recurse-submodules|--recursive -u|--upload-pack --exec --receive-pack",
          valued: "-b -o -j",
          operands: "clones",
        },
        fetch: { risks: "--upload-pack", repository: true },
        pull: {
          risks: "--upload-pack -s|--strategy",
          harmless: "--strategy-option",
          repository: true,
          spreads: { tracked: true },
        },
        push: { risks: "--exec --receive-pack", valued: "-o" },
        "ls-remote": { risks: "--upload-pack --exec" },
        "fetch-pack": { risks: "--upload-pack --exec" },
        "send-pack": { risks: "--receive-pack --exec" },
        apply: {
          risks: "--unsafe-paths --build-fake-ancestor",
          repository: true,
          spreads: {},
          dryRun: "--check --stat --numstat --summary --cached",
        },
        archive: { writes: "-o|--output", risks: "--exec --remote" },
        merge: {
          risks: "-s|--strategy",
          valued: "-m -F -X",
          harmless: "--strategy-option",
          repository: true,
          spreads: { tracked: true },
        },
        rebase: {
          risks: "-x|--exec -s|--strategy",
          valued: "-X -C",
          harmless: "--strategy-option",
          repository: true,
          spreads: { tracked: true },
        },
        "cherry-pick": {
          risks: "--strategy",
          harmless: "--strategy-option",
          repository: true,
          spreads: { tracked: true },
        },
        revert: {
          risks: "--strategy",
          harmless: "--strategy-option",
          repository: true,
          spreads: { tracked: true },
        },
        grep: {
          risks: "-O|--open-files-in-pager",
          valued: "-f",
          operands: "pattern",
          numbers: true,
          readOnly:
            "-A: -B: -C: -E -F -G -H -I -L -P -W -a -c -e: -h -i -l -m: -n -o -p -q -v -w -z --after-context= --all-match --and --basic-regexp --before-context= --break --cached --color? --column --context= --count --extended-regexp --files-with-matches --files-without-match --fixed-strings --full-name --function-context --heading --ignore-case --invert-match --line-number --max-count= --max-depth= --name-only --no-color --null --only-matching --or --perl-regexp --quiet --show-function --text --word-regexp",
          shows: "always",
        },
        init: { writes: "--separate-git-dir", risks: "--template", operands: "changes" },
        bundle: { writes: "--output", operand: /^(?!create$)/, operands: "changes" },
        "format-patch": { writes: "-o|--output-directory", shows: "always" },
        "fast-export": { writes: "--export-marks", shows: "always" },
        "interpret-trailers": { inPlace: "--in-place" },
        help: { risks: "-w|--web" },
        commit: { risks: "", valued: "-m -F -C -c -t", repository: true, shows: "when verbose" },
        // Without `--list`, an operand is the name of a tag to create.
        tag: {
          risks: "",
          valued: "-m -F -u",
          operands: "text",
          readOnly: {
            options:
              "-l --list -n? --contains? --merged? --no-contains? --no-merged? --points-at= --sort= --format= --column? --no-column",
            maxOperands: 0,
          },
          repository: true,
        },
        status: {
          operands: "reads",
          readOnly:
            "-b -s -u? -v -z --ahead-behind --branch --column? --find-renames? --ignored? --long --no-ahead-behind --no-renames --porcelain? --renames --short --show-stash --untracked-files? --verbose",
          shows: "when verbose",
        },
        log: {
          operands: "reads",
          numbers: true,
          readOnly: logOptions,
          shows: "with a patch option",
        },
        show: {
          operands: "reads",
          numbers: true,
          readOnly: logOptions,
          shows: "unless summed up",
        },
        diff: {
          operands: "reads",
          numbers: true,
          readOnly: diffOptions,
          shows: "unless summed up",
        },
        // In this subcommand, `-u` means untracked files.
        "stash show": {
          operands: "text",
          numbers: true,
          readOnly: {
            options: diffOptions.replace(" -u ", " "),
            maxOperands: 1,
          },
          shows: "unless summed up",
        },
        "stash list": {
          operands: "text",
          numbers: true,
          readOnly: {
            options: logOptions,
            maxOperands: 0,
          },
          shows: "with a patch option",
        },
        // No operands are allowed, because `branch <name>` creates a branch.
        branch: {
          operands: "text",
          readOnly: {
            options:
              "-a -r -v -vv --abbrev? --all --color? --column? --contains= --format= --ignore-case --merged? --no-color --no-column --no-contains= --no-merged? --points-at= --remotes --show-current --sort= --verbose",
            maxOperands: 0,
          },
          repository: true,
        },
        "rev-parse": {
          harmless: "--git-dir",
          operands: "reads",
          readOnly:
            "-q --abbrev-ref? --absolute-git-dir --all --branches? --git-common-dir --git-dir --is-bare-repository --is-inside-git-dir --is-inside-work-tree --is-shallow-repository --quiet --remotes? --short? --show-cdup --show-prefix --show-superproject-working-tree --show-toplevel --symbolic --symbolic-full-name --tags? --verify",
        },
        "ls-files": {
          operands: "reads",
          readOnly:
            "-c -d -m -o -i -s -u -z -t -v -x: --cached --deleted --modified --others --ignored --stage --unmerged --exclude= --exclude-standard --full-name --error-unmatch --directory --no-empty-directory",
        },
        "ls-tree": {
          operands: "reads",
          readOnly: "-r -d -t -l -z --name-only --name-status --full-name --full-tree --long",
        },
        blame: {
          operands: "reads",
          readOnly:
            "-L: -b -c -e -f -l -n -p -s -t -w -M? -C? --porcelain --line-porcelain --date= --show-email",
          shows: "always",
        },
        "cat-file": { operands: "reads", readOnly: "-t -s -e -p", shows: "always" },
        "rev-list": {
          operands: "reads",
          numbers: true,
          readOnly:
            "-n: --all --after= --author= --before= --branches? --count --first-parent --grep= --left-right --max-count= --merges --no-merges --oneline --parents --reverse --since= --skip= --tags? --topo-order --until=",
        },
        "merge-base": { operands: "reads", readOnly: "-a --all --is-ancestor --octopus --fork-point" },
        describe: {
          operands: "reads",
          readOnly:
            "--all --tags --always --long --abbrev= --match= --exclude= --contains --exact-match --first-parent",
        },
        "show-ref": {
          operands: "text",
          readOnly:
            "-d -q -s --abbrev? --dereference --head --heads --branches --hash? --quiet --tags --verify",
        },
        "for-each-ref": {
          operands: "text",
          readOnly: "--count= --sort= --format= --contains= --merged= --no-merged= --points-at=",
        },
        shortlog: {
          operands: "reads",
          readOnly: "-c -e -n -s --all --committer --email --numbered --since= --summary --until=",
        },
        "check-ignore": {
          operands: "reads",
          readOnly: "-q -v -n --no-index --non-matching --quiet --verbose",
        },
        "count-objects": {
          operands: "text",
          readOnly: { options: "-v -H --human-readable --verbose", maxOperands: 0 },
        },
        "remote get-url": { operands: "text", readOnly: "--all --push" },
        remote: { operands: "text", readOnly: { options: "-v --verbose", maxOperands: 0 } },
        "worktree list": {
          operands: "text",
          readOnly: { options: "-v -z --porcelain --verbose", maxOperands: 0 },
        },
        add: { repository: true, shows: "when interactive" },
        am: { repository: true, spreads: {} },
        bisect: { spreads: { tracked: true } },
        checkout: {
          repository: true,
          shows: "when interactive",
          operands: "changes",
          valued: "-b -B --orphan",
          spreads: { tracked: true, unless: "-b -B --orphan", unlessPaths: true },
        },
        "checkout-index": { operands: "changes", spreads: { tracked: true, unlessOperands: true } },
        clean: {
          operands: "changes",
          valued: "-e",
          spreads: { unlessOperands: true },
          dryRun: "-n|--dry-run",
        },
        gc: { repository: true },
        "lfs checkout": { spreads: { tracked: true } },
        "lfs pull": { spreads: { tracked: true } },
        "merge-file": { operands: "first", valued: "-L", dryRun: "-p|--stdout" },
        mv: { repository: true, operands: "moves", dryRun: "-n|--dry-run" },
        "read-tree": { spreads: { with: "-u", tracked: true } },
        reset: {
          repository: true,
          shows: "when interactive",
          spreads: { with: "--hard --merge --keep", tracked: true },
        },
        restore: {
          repository: true,
          shows: "when interactive",
          operands: "changes",
          valued: "-s --source",
          rewrites: "-W|--worktree",
          dryRun: "-S|--staged",
        },
        rm: { repository: true, operands: "changes", dryRun: "--cached -n|--dry-run" },
        "sparse-checkout": { spreads: { tracked: true } },
        stash: { repository: true, shows: "when interactive", spreads: { tracked: true } },
        "stash clear": { operands: "text" },
        "stash drop": { operands: "text" },
        "stash push": {
          shows: "when interactive",
          operands: "changes",
          valued: "-m",
          spreads: { tracked: true, unlessOperands: true },
        },
        "submodule add": { operands: "clones", valued: "-b" },
        "submodule update": { spreads: {} },
        subtree: { spreads: { tracked: true } },
        switch: {
          repository: true,
          valued: "-c -C --create --force-create --orphan",
          spreads: { tracked: true, unless: "-c -C --create --force-create --orphan" },
        },
        "worktree add": { operands: "first", valued: "-b -B" },
        "worktree move": { operands: "moves" },
        "worktree remove": { operands: "changes" },
        annotate: { shows: "always" },
        "merge-tree": { shows: "always" },
        "range-diff": { shows: "always" },
        whatchanged: { shows: "with a patch option" },
        reflog: {
          operands: "text",
          numbers: true,
          readOnly: { options: logOptions, operand: /^(?!(?:expire|delete|drop|write)$)/ },
          shows: "with a patch option",
        },
        "symbolic-ref": {
          operands: "text",
          readOnly: { options: "-q --no-recurse --quiet --short", maxOperands: 1 },
        },
        "name-rev": { operands: "text", readOnly: "--all --always --name-only --no-undefined --tags" },
        cherry: { operands: "text", readOnly: "-v --abbrev?" },
        "diff-tree": {
          operands: "reads",
          readOnly: `${diffOptions} -c -m -r -t --always --cc --no-commit-id --root`,
          shows: "with a patch option",
        },
        "diff-index": { shows: "with a patch option" },
        "diff-files": { shows: "with a patch option" },
      },
      readOnly: "-P --no-pager --no-optional-locks",
      version: "--version",
      runsAfter: "bisect run|submodule foreach",
      remember: 2,
      exact: "remote lfs sparse-checkout update-index update-ref replace",
      longer: "stash worktree",
      texts: "-m --message",
      directories: { when: /^(?:grep|archive|diff)$/, own: true },
    },
  ],
  [
    "gh",
    {
      version: "--version",
      risks: "",
      subcommands: {},
      riskySubcommands: "alias extension extensions ext",
      actions: {
        "release download": { targets: "-O|--output", into: "-D|--dir", spreads: {} },
        "repo clone": { operands: "clones" },
        "run download": { into: "-D|--dir", spreads: {} },
      },
      exact: "api auth codespace config gpg-key secret ssh-key variable",
      remember: 2,
      longer: "pr issue run repo",
      texts: "-b -t --body --title",
    },
  ],
  [
    "hg",
    {
      risks: "--config --debugger --config-file",
      valued: "-R",
      actions: Object.fromEntries(
        "update up checkout co revert pull merge rebase graft import purge shelve unshelve"
          .split(" ")
          .map((name) => [name, { spreads: {} }]),
      ),
    },
  ],
  ["jj", { risks: "--config --config-toml --config-file", valued: "-R", exact: "config util" }],
  ["svn", { risks: "--diff-cmd --diff3-cmd --editor-cmd --config-option --config-dir", whole: true }],
]
