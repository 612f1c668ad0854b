import type { RiskyProgram } from "./risky-program.ts"

const transfer = "-u|--upload-pack --exec --receive-pack"

/** What a rule for `git *` does not cover. */
export const riskyGit: RiskyProgram = {
  options:
    "-c --config-env --exec-path --git-dir --work-tree -p|--paginate --output --ext-diff --textconv --filters --show-signature --open-files-in-pager",
  valued: "-C -c --git-dir --work-tree --namespace --super-prefix",
  // `ext::…` and the like name a program that speaks for the remote.
  operand: /^(?![\w+-]+::)/,
  riskySubcommands:
    "config difftool mergetool filter-branch bisect submodule daemon send-email instaweb credential hook maintenance p4 svn cvsserver remote-ext remote-fd fast-import merge-index merge-one-file web--browse shell http-backend upload-pack receive-pack upload-archive for-each-repo bugreport diagnose credential-store credential-cache mailsplit column checkout-index",
  subcommands: {
    clone: {
      options: `-c|--config --template --recurse-submodules|--recursive --separate-git-dir ${transfer}`,
      valued: "-b -o -j",
    },
    fetch: { options: "--upload-pack" },
    pull: { options: "--upload-pack -s|--strategy", harmless: "--strategy-option" },
    push: { options: "--exec --receive-pack", valued: "-o" },
    "ls-remote": { options: "--upload-pack --exec" },
    "fetch-pack": { options: "--upload-pack --exec" },
    "send-pack": { options: "--receive-pack --exec" },
    apply: { options: "--unsafe-paths --build-fake-ancestor" },
    archive: { options: "-o|--output --exec --remote" },
    merge: { options: "-s|--strategy", valued: "-m -F -X", harmless: "--strategy-option" },
    rebase: { options: "-x|--exec -s|--strategy", valued: "-X -C", harmless: "--strategy-option" },
    "cherry-pick": { options: "--strategy", harmless: "--strategy-option" },
    revert: { options: "--strategy", harmless: "--strategy-option" },
    grep: { options: "-O|--open-files-in-pager", valued: "-e -f -A -B -C -m" },
    init: { options: "--template --separate-git-dir" },
    bundle: { options: "--output", operand: /^(?!create$)/ },
    "format-patch": { options: "-o|--output-directory" },
    "fast-export": { options: "--export-marks" },
    "interpret-trailers": { options: "--in-place" },
    help: { options: "-w|--web" },
    commit: { options: "", valued: "-m -F -C -c -t" },
    tag: { options: "", valued: "-m -F -u" },
  },
}
