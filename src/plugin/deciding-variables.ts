/** Variables by which a command does something else than its words say. */
interface DecidingVariables {
  /** Of the whole name. */
  names: RegExp
  /** What they decide, after "it". For people. */
  why: string
}

/**
 * Rules were asked about a command without any of these: one that a plugin sets would have another program run than the
 * one that was allowed, or more. A family is listed whole where most of it decides something. From the manuals of the
 * programs.
 */
const decidingVariables: readonly DecidingVariables[] = [
  { names: /PATH|CDPATH|PWD|FPATH/, why: "says where programs and directories are found" },
  { names: /HOME|ZDOTDIR|XDG_(?:CONFIG|DATA)_(?:HOME|DIRS)/, why: "says whose settings programs read" },
  { names: /ENV|IFS|SHELL|SHELLOPTS|PS4|PROMPT_COMMAND|BASH.*/, why: "is read by shells before the command" },
  { names: /(?:LD|DYLD)_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH/, why: "puts code into every program" },
  {
    names: /OPENSSL_(?:CONF|ENGINES|MODULES)|(?:GTK|GIO_EXTRA)_MODULES|QT_PLUGIN_PATH/,
    why: "loads modules",
  },
  {
    names: /GIT_.*|SVN_.*|HG(?:RCPATH|MERGE)?|SSH_SK_.*|CVS_RSH|RSYNC_RSH/,
    why: "makes git and its like start programs",
  },
  {
    names: /.*(?:EDITOR|PAGER|BROWSER|ASKPASS)|VISUAL|LESS.*|MAN(?:OPT|ROFFOPT)/,
    why: "names a program",
  },
  { names: /VIMINIT|EXINIT|GVIMINIT|FZF_DEFAULT_.*/, why: "is carried out by the program that reads it" },
  {
    names: /NODE_(?:OPTIONS|PATH|REPL_.*)|BUN_OPTIONS/,
    why: "loads code into Node",
  },
  { names: /npm_config_.*|(?:YARN|PNPM|COREPACK)_.*/i, why: "sets npm's options, its shell among them" },
  {
    names:
      /PYTHON(?:PATH|HOME|STARTUP|BREAKPOINT|INSPECT|USERBASE|EXECUTABLE|PLATLIBDIR|WARNINGS|PYCACHEPREFIX)|(?:PIP|UV)_.*/,
    why: "loads code into Python",
  },
  { names: /PERL.*/, why: "loads code into Perl" },
  { names: /RUBY.*|GEM_.*|BUNDLE_.*|RAKEOPT/, why: "loads code into Ruby" },
  {
    names: /.*JAVA_(?:TOOL_)?(?:OPTIONS|OPTS|HOME)|CLASSPATH|JAVA_.*|(?:MAVEN|GRADLE|SBT|KOTLIN)_.*/,
    why: "loads code into Java",
  },
  {
    names:
      /LUA_.*|TCLLIBPATH|(?:JULIA|GUILE)_.*|(?:ERL|ELIXIR_ERL)_.*|PHPRC|PHP_.*|R_(?:PROFILE|ENVIRON|LIBS).*|(?:CORECLR|COR)_.*|DOTNET_(?:STARTUP_HOOKS|ADDITIONAL_DEPS|SHARED_STORE|ROOT.*|HOST_PATH|CLI_HOME|DiagnosticPorts)/,
    why: "loads code",
  },
  { names: /RUSTC.*|RUSTDOC.*|RUSTFLAGS|RUSTUP_.*|CARGO(?!_TERM_).*/, why: "says what cargo compiles with" },
  { names: /GO(?:FLAGS|ROOT|ENV|TOOLCHAIN|PATH|BIN|PROXY)|CGO_.*/, why: "says what go compiles with" },
  { names: /PKG_CONFIG.*|PROTOC(?:_.*)?/, why: "says what builds ask and generate code with" },
  { names: /CC|CXX|CPP|LD|AR|AS|FC|(?:C|CXX|CPP|LD|F)FLAGS|CMAKE_.*/, why: "says what C is compiled with" },
  {
    names:
      /(?:GNU)?MAKE.*|MFLAGS|TAR_OPTIONS|ZIPOPT|UNZIP|RIPGREP_CONFIG_PATH|GREP_OPTIONS|ACKRC|ACK_.*|TF_CLI_ARGS.*/,
    why: "adds options",
  },
  {
    names:
      /CURL_HOME|WGETRC|SYSTEM_WGETRC|KUBECONFIG|DOCKER_CONFIG|ANSIBLE_.*|TF_CLI_CONFIG_FILE|NIX_.*|GNUPGHOME|PSQLRC|MYSQL_HOME|AWS_(?:SHARED_)?(?:CONFIG|CREDENTIALS)_FILE/,
    why: "names settings that name programs",
  },
  { names: /ELECTRON_RUN_AS_NODE/, why: "makes another program of those that are built on Electron" },
  { names: /DOCKER_(?:HOST|CONTEXT)/, why: "says on which machine containers run" },
  { names: /TACKLE_.*/, why: "is Tackle's own" },
]

const whole = decidingVariables.map(({ names, why }) => ({
  names: new RegExp(`^(?:${names.source})$`, names.flags),
  why,
}))

/** Why no plugin may set the variable of a command; undefined where it may. */
export function whyRefused(name: string): string | undefined {
  return whole.find(({ names }) => names.test(name))?.why
}
