import type { Program, ProgramTable } from "../program.ts"

const withFix: Program = { rewrites: "--fix" }
const withWrite: Program = { rewrites: "-w|--write" }
const inPlace: Program = { rewrites: "-i|--in-place|--inplace" }
const byDefault: Program = { operands: "changes" }
const wholeProject: Program = { operands: "changes", spreads: { unlessOperands: true } }

/**
 * Programs that rewrite or remove source files. Linters and formatters that run project code are in `build-tools.ts`.
 */
export const formatters: ProgramTable = [
  ["gofmt gofumpt goimports gci golines shfmt 2to3 futurize", withWrite],
  ["rimraf del-cli trash trash-put fastmod codemod", byDefault],
  ["csharpier", wholeProject],
  ["gleam", { actions: { format: { ...wholeProject, dryRun: "--check" } } }],
  ["comby", { singleDash: true, spreads: { with: "-i -in-place" } }],
  [
    "ast-grep",
    { rewrites: "-U|--update-all -i|--interactive", valued: "-p -r -l --pattern --rewrite --lang" },
  ],
  ["codespell typos", { rewrites: "-w|--write-changes" }],
  ["black pyink darker", { ...byDefault, dryRun: "--check --diff" }],
  ["isort", { ...byDefault, dryRun: "-c|--check|--check-only --diff" }],
  ["yapf autopep8 autoflake docformatter clang-format swift-format", inPlace],
  ["pyupgrade reorder-python-imports add-trailing-comma dos2unix unix2dos mac2unix sponge", byDefault],
  [
    "ruff",
    {
      actions: {
        format: { ...wholeProject, dryRun: "--check --diff" },
        check: { rewrites: "--fix --fix-only --add-noqa" },
      },
    },
  ],
  ["rustfmt", { ...byDefault, dryRun: "--check" }],
  ["stylua elm-format nixfmt alejandra", { ...byDefault, dryRun: "-c|--check --validate" }],
  ["sd", { ...byDefault, dryRun: "-p|--preview" }],
  ["jscodeshift", { ...byDefault, dryRun: "-d|--dry" }],
  ["swiftformat", { ...byDefault, dryRun: "--lint --dryrun" }],
  ["scalafmt", { ...wholeProject, dryRun: "--test --check --list" }],
  ["pint", { ...wholeProject, dryRun: "--test" }],
  ["phpcbf", byDefault],
  ["php-cs-fixer", { actions: { fix: { ...wholeProject, dryRun: "--dry-run" } } }],
  ["standard ts-standard xo oxlint standardrb clang-tidy", withFix],
  ["markdownlint markdownlint-cli2", { rewrites: "-f|--fix" }],
  ["ktlint", { rewrites: "-F|--format" }],
  ["google-java-format", { rewrites: "-i|--replace" }],
  [
    "rubocop",
    {
      rewrites:
        "-a|--autocorrect|--auto-correct|--safe-auto-correct -A|--autocorrect-all|--auto-correct-all -x|--fix-layout",
    },
  ],
  [
    "biome",
    {
      actions: {
        check: { rewrites: "--write --apply --apply-unsafe --fix" },
        format: { rewrites: "--write --fix" },
        lint: { rewrites: "--write --apply --apply-unsafe --fix" },
      },
    },
  ],
  ["dprint", { actions: { fmt: wholeProject } }],
  ["sqlfluff", { actions: { fix: wholeProject, format: wholeProject } }],
  [
    "taplo",
    {
      actions: {
        fmt: { ...wholeProject, dryRun: "--check --diff" },
        format: { ...wholeProject, dryRun: "--check --diff" },
      },
    },
  ],
  ["buf", { targets: "-o|--output", actions: { format: withWrite } }],
  ["pre-commit", { actions: { run: { spreads: { tracked: true } } } }],
  ["lint-staged", { spreads: { tracked: true } }],
]
