import type { RiskyProgram } from "./risky-program.ts"

const compiler: RiskyProgram = {
  options: "-o* -wrapper -B* -fplugin* -specs -Xclang -load -MF -dumpbase -fuse-ld -fpass-plugin",
  singleDash: true,
  // `@file` holds further options.
  operand: /^(?!@)/,
}

const scripts =
  "--script-shell --shell --node-options --userconfig --globalconfig --git --editor --viewer --browser --init-module -c|--call --onload-script --node-gyp --logs-dir --config.*"

const tests =
  "--globalSetup --setupFiles --setupFilesAfterEnv --testRunner --transform --resolver --reporters"

/** Programs that build, install or test. */
export const riskyBuilders: readonly (readonly [string, RiskyProgram])[] = [
  ["gcc g++ cc c++ clang clang++ ld as tcc gfortran", compiler],
  ["rustc", { options: "-o --out-dir -C|--codegen -Z --emit --sysroot", valued: "-L -l" }],
  ["cargo", { options: "--config -Z --out-dir --artifact-dir", valued: "-p -j -F", whole: true }],
  [
    "go",
    {
      options:
        "-toolexec -exec -o -overlay -vettool -fixtool -coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir -modfile -pkgdir -ldflags -gcflags -asmflags -gccgoflags -w",
      singleDash: true,
    },
  ],
  [
    "make gmake",
    {
      options: "-f|--file|--makefile --eval -E -I|--include-dir",
      valued: "-C -j -l -o -W",
      // Values are expanded, and some variables say what runs the recipes.
      operand: /^(?!(?:\.?SHELL\w*|\w*MAKEFLAGS|MAKEFILES|MAKE)\W)(?!.*(?:\$[({]|!=|`))/s,
    },
  ],
  [
    "cmake",
    { options: "-P -E -C --graphviz --trace-redirect --profiling-output", valued: "-S -B -G -T -A -D" },
  ],
  ["ninja", { options: "-f", valued: "-C -j -k -l -d -t" }],
  [
    "mvn mvnw",
    {
      options: "-f|--file -s|--settings -gs|--global-settings -t|--toolchains -l|--log-file",
      valued: "-D -pl -P -T",
    },
  ],
  [
    "gradle gradlew",
    {
      options: "-I|--init-script -b|--build-file -c|--settings-file --include-build -g|--gradle-user-home",
      whole: true,
    },
  ],
  ["npm pnpm yarn", { options: scripts, valued: "-w -F -C", harmless: "--global --config --shell-emulator" }],
  [
    "pip pip3",
    { options: "--log --log-file --python --report --config-settings", valued: "-r -c -e -i -f -t" },
  ],
  [
    "pytest py.test",
    {
      options:
        "-c|--config-file -p -o|--override-ini --basetemp --junitxml|--junit-xml --log-file --pdbcls --confcutdir --debug --cov-config --html",
      valued: "-k -m -n -r -W",
    },
  ],
  [
    "eslint",
    {
      options:
        "-c|--config -o|--output-file -f|--format --rulesdir --plugin --parser --resolve-plugins-relative-to --cache-location --cache-file",
      whole: true,
    },
  ],
  [
    "prettier stylelint",
    {
      options: "--plugin --config --custom-formatter --custom-syntax -o|--output-file --cache-location",
      whole: true,
    },
  ],
  [
    "mocha jest vitest ava nyc c8",
    {
      options: `-c|--config -r|--require --import --loader --outputFile --output-file --reporter-options ${tests}`,
      valued: "-t -g -f",
      whole: true,
    },
  ],
  ["tsc", { options: "--outFile --generateTrace --generateCpuProfile --tsBuildInfoFile", whole: true }],
]
