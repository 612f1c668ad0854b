import type { Program, ProgramTable } from "../program.ts"

const compiler: Program = {
  writes: "-o* -MF -dumpbase",
  risks: "-wrapper -B* -fplugin* -specs -run -Xclang -load -fuse-ld -fpass-plugin",
  singleDash: true,
  // `@file` reads further options from a file.
  operand: /^(?!@)/,
}

const make: Program = {
  startsIn: "-C",
  risks: "-f|--file|--makefile --eval -E -I|--include-dir",
  valued: "-C -j -l -o -W",
  // `make` expands values, and some variables select the program that runs the recipes.
  operand: /^(?!(?:\.?SHELL\w*|\w*MAKEFLAGS|MAKEFILES|MAKE)\W)(?!.*(?:\$[({]|!=|`))/s,
}

const formatsAll: Program = { operands: "changes", spreads: { unlessOperands: true } }

const npm: Program = {
  risks:
    "--script-shell --shell --node-options --userconfig --globalconfig --git --editor --viewer --browser --init-module -c|--call --onload-script --node-gyp --logs-dir --config.*",
  targets: "--pack-destination",
  actions: { create: { operands: "changes" }, init: { operands: "changes" } },
  valued: "-w -F -C",
  harmless: "--global --config --shell-emulator",
  runsAfter: "exec|x|dlx",
  remember: 2,
  longer: "run",
  exact: "c set create init innit link ln pkg",
}

const npmList = "-a -l -p --all --depth= --json --long --parseable"

/** Programs that build, test or install projects, or run their scripts. */
export const buildTools: ProgramTable = [
  ["gcc g++ clang", { ...compiler, version: "--version" }],
  ["cc c++ clang++ ld as tcc gfortran", compiler],
  ["rustc", { writes: "-o --out-dir", risks: "-C|--codegen -Z --emit --sysroot", valued: "-L -l" }],
  [
    "cargo",
    {
      writes: "--out-dir --artifact-dir",
      targets: "--target-dir",
      actions: {
        fmt: { spreads: {}, dryRun: "--check" },
        fix: { spreads: {} },
        clippy: { rewrites: "--fix" },
        new: { operands: "changes" },
        init: { operands: "changes" },
      },
      risks: "--config -Z",
      valued: "-p -j -F",
      whole: true,
      remember: 2,
    },
  ],
  [
    "go",
    {
      targets: "-o",
      writes: "-coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir",
      risks:
        "-toolexec -exec -overlay -vettool -fixtool -modfile -pkgdir -ldflags -gcflags -asmflags -gccgoflags -w",
      singleDash: true,
      actions: { fmt: { spreads: {}, dryRun: "-n" }, fix: { spreads: {} } },
      remember: 2,
      exact: "run env generate",
      longer: "mod",
    },
  ],
  ["make", { ...make, version: "--version", remember: 2 }],
  ["gmake", { ...make, remember: 2 }],
  [
    "cmake",
    {
      writes: "--graphviz --trace-redirect --profiling-output",
      risks: "-P -E -C",
      targets: "-B",
      valued: "-S -G -T -A -D",
      version: "--version",
    },
  ],
  ["ninja", { risks: "-f", valued: "-C -j -k -l -d -t" }],
  [
    "mvn mvnw",
    {
      writes: "-l|--log-file",
      risks: "-f|--file -s|--settings -gs|--global-settings -t|--toolchains",
      valued: "-D -pl -P -T",
      remember: 2,
    },
  ],
  [
    "gradle gradlew",
    {
      risks: "-I|--init-script -b|--build-file -c|--settings-file --include-build -g|--gradle-user-home",
      whole: true,
      remember: 2,
    },
  ],
  [
    "npm",
    {
      ...npm,
      actions: {
        ...npm.actions,
        ls: { operands: "text", readOnly: npmList },
        list: { operands: "text", readOnly: npmList },
      },
    },
  ],
  // These programs load plugins or another version of themselves that the project specifies, even to print a list.
  ["pnpm yarn", npm],
  [
    "pip pip3",
    {
      version: "-V --version",
      actions: {
        list: { operands: "text", readOnly: "-v --format= --local --not-required --user --verbose" },
        show: { operands: "text", readOnly: "-f -v --files --verbose" },
      },
      writes: "--log --log-file --report",
      risks: "--python --config-settings",
      targets: "-t|--target -d|--dest -w|--wheel-dir",
      valued: "-r -c -e -i -f",
      remember: 2,
    },
  ],
  [
    "pytest py.test",
    {
      writes: "--basetemp --junitxml|--junit-xml --log-file --html",
      risks: "-c|--config-file -p -o|--override-ini --pdbcls --confcutdir --debug --cov-config",
      valued: "-k -m -n -r -W",
    },
  ],
  [
    "eslint",
    {
      writes: "-o|--output-file --cache-location --cache-file",
      risks: "-c|--config -f|--format --rulesdir --plugin --parser --resolve-plugins-relative-to",
      rewrites: "--fix",
      whole: true,
    },
  ],
  [
    "prettier stylelint",
    {
      writes: "-o|--output-file --cache-location",
      risks: "--plugin --config --custom-formatter --custom-syntax",
      rewrites: "-w|--write --fix",
      whole: true,
    },
  ],
  [
    "mocha jest vitest ava nyc c8",
    {
      writes: "--outputFile --output-file",
      risks:
        "-c|--config -r|--require --import --loader --reporter-options --globalSetup --setupFiles --setupFilesAfterEnv --testRunner --transform --resolver --reporters",
      valued: "-t -g -f",
      whole: true,
    },
  ],
  [
    "tsc",
    {
      writes:
        "-outFile|--outFile -generateTrace|--generateTrace -generateCpuProfile|--generateCpuProfile -tsBuildInfoFile|--tsBuildInfoFile",
      targets: "-outDir|--outDir -declarationDir|--declarationDir",
      singleDash: true,
      whole: true,
    },
  ],
  ["uv poetry", { version: "-V --version", runsAfter: "run", remember: 2, longer: "run" }],
  ["pipenv", { runsAfter: "run", remember: 2, longer: "run" }],
  ["conda", { runsAfter: "run", remember: 2 }],
  ["rustup", { runsAfter: "run", remember: 2, exact: "default override set toolchain" }],
  ["nix", { runsAfter: "-c|--command|--run|run", remember: 2 }],
  ["bundle", { runsAfter: "exec|run", remember: 2, longer: "exec" }],
  ["just apt apt-get dnf sbt turbo", { remember: 2 }],
  [
    "nx",
    {
      actions: { format: { spreads: { tracked: true } }, "format:write": { spreads: { tracked: true } } },
      remember: 2,
    },
  ],
  ["brew", { remember: 2, exact: "tap services" }],
  ["systemctl", { remember: 2, exact: "edit enable link set-environment" }],
  [
    "rails",
    {
      actions: { new: { operands: "changes" } },
      risks: "",
      subcommands: {},
      riskySubcommands: "runner r console c dbconsole db",
      input: { always: true, with: "runner r console c dbconsole db" },
      remember: 2,
    },
  ],
  ["stack cabal", { remember: 2, exact: "runghc runhaskell ghci ghc user-config" }],
  ["nvm corepack", { remember: 2, exact: "enable use run" }],
  [
    "dotnet",
    {
      actions: { format: { spreads: {}, dryRun: "--verify-no-changes" } },
      remember: 2,
      exact: "run nuget fsi",
    },
  ],
  [
    "mix",
    {
      actions: { format: { ...formatsAll, dryRun: "--check-formatted --dry-run" } },
      remember: 2,
      exact: "run",
    },
  ],
  ["swift", { actions: { format: { rewrites: "-i|--in-place" } }, remember: 2, exact: "run" }],
  [
    "dart flutter zig",
    {
      actions: {
        format: formatsAll,
        fmt: { ...formatsAll, dryRun: "--check" },
        fix: { spreads: { with: "--apply" } },
      },
      remember: 2,
      exact: "run pub",
    },
  ],
  ["composer", { remember: 2, longer: "run", exact: "global" }],
]

const withFix: Program = { rewrites: "--fix" }
const withWrite: Program = { rewrites: "-w|--write" }
const inPlace: Program = { rewrites: "-i|--in-place|--inplace" }
const byDefault: Program = { operands: "changes" }
const wholeProject: Program = { operands: "changes", spreads: { unlessOperands: true } }

/**
 * Programs that rewrite or remove source files. Linters and formatters that run project code are in {@link buildTools}.
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
      version: "-V --version",
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
