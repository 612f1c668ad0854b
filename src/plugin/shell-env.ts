import type { PluginHost } from "./host.ts"

/** The working directory of a command, and the call that runs the command. */
export interface CommandLocation {
  cwd: string
  sessionID: string
  callID: string | undefined
}

/**
 * Returns the variables that plugins add to a command. Omits variables that plugins cannot set, and passes them with
 * the reasons to `onRefused`.
 */
export async function variablesOfPlugins(
  plugins: PluginHost,
  location: CommandLocation,
  onRefused: (names: string[]) => void,
): Promise<Record<string, string>> {
  if (!plugins.has("shell.env")) return {}
  const { output } = await plugins.run("shell.env", { input: { ...location }, output: { env: {} } })
  const entries = Object.entries(output.env)
  const refused = entries.flatMap(([name]) => {
    const why = whyRefused(name)
    return why === undefined ? [] : [`${name} (it ${why})`]
  })
  if (refused.length > 0) onRefused(refused)
  return Object.fromEntries(entries.filter(([name]) => whyRefused(name) === undefined))
}

/** Variables that change the effect of a command. */
interface UnsafeVariables {
  /** Matches the whole variable name. */
  names: RegExp
  /** The effect of the variables, as a phrase that follows "it". Shown to users. */
  why: string
}

/**
 * Variables that plugins cannot set. The permission rules check a command without these variables, so a plugin could
 * use them to make an allowed command run another program. If most variables with a common prefix are unsafe, all
 * variables with this prefix are refused. Source: the programs' manuals.
 */
const unsafeVariables: readonly UnsafeVariables[] = [
  { names: /PATH|CDPATH|PWD|FPATH/, why: "selects where programs and directories are found" },
  { names: /HOME|ZDOTDIR|XDG_(?:CONFIG|DATA)_(?:HOME|DIRS)/, why: "selects the settings that programs read" },
  { names: /ENV|IFS|SHELL|SHELLOPTS|PS4|PROMPT_COMMAND|BASH.*/, why: "is read by shells before the command" },
  { names: /(?:LD|DYLD)_.*|GCONV_PATH|GLIBC_TUNABLES|LOCPATH/, why: "loads code into every program" },
  {
    names: /OPENSSL_(?:CONF|ENGINES|MODULES)|(?:GTK|GIO_EXTRA)_MODULES|QT_PLUGIN_PATH/,
    why: "loads modules",
  },
  {
    names: /GIT_.*|SVN_.*|HG(?:RCPATH|MERGE)?|SSH_SK_.*|CVS_RSH|RSYNC_RSH/,
    why: "makes git, ssh, rsync and similar tools start other programs",
  },
  {
    names: /.*(?:EDITOR|PAGER|BROWSER|ASKPASS)|VISUAL|LESS.*|MAN(?:OPT|ROFFOPT)/,
    why: "specifies a program to run",
  },
  { names: /VIMINIT|EXINIT|GVIMINIT|FZF_DEFAULT_.*/, why: "contains commands for the program that reads it" },
  {
    names: /NODE_(?:OPTIONS|PATH|REPL_.*)|BUN_OPTIONS/,
    why: "loads code into Node",
  },
  { names: /npm_config_.*|(?:YARN|PNPM|COREPACK)_.*/i, why: "sets npm options, including its shell" },
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
  {
    names: /RUSTC.*|RUSTDOC.*|RUSTFLAGS|RUSTUP_.*|CARGO(?!_TERM_).*/,
    why: "changes how cargo compiles code",
  },
  { names: /GO(?:FLAGS|ROOT|ENV|TOOLCHAIN|PATH|BIN|PROXY)|CGO_.*/, why: "changes how go compiles code" },
  { names: /PKG_CONFIG.*|PROTOC(?:_.*)?/, why: "changes how builds generate code" },
  { names: /CC|CXX|CPP|LD|AR|AS|FC|(?:C|CXX|CPP|LD|F)FLAGS|CMAKE_.*/, why: "changes how C is compiled" },
  {
    names:
      /(?:GNU)?MAKE.*|MFLAGS|TAR_OPTIONS|ZIPOPT|UNZIP|RIPGREP_CONFIG_PATH|GREP_OPTIONS|ACKRC|ACK_.*|TF_CLI_ARGS.*/,
    why: "adds options",
  },
  {
    names:
      /CURL_HOME|WGETRC|SYSTEM_WGETRC|KUBECONFIG|DOCKER_CONFIG|ANSIBLE_.*|TF_CLI_CONFIG_FILE|NIX_.*|GNUPGHOME|PSQLRC|MYSQL_HOME|AWS_(?:SHARED_)?(?:CONFIG|CREDENTIALS)_FILE/,
    why: "selects settings that specify programs to run",
  },
  { names: /ELECTRON_RUN_AS_NODE/, why: "turns Electron programs into Node" },
  { names: /DOCKER_(?:HOST|CONTEXT)/, why: "selects the machine that runs containers" },
  { names: /TACKLE_.*/, why: "belongs to Tackle" },
]

const wholeNames = unsafeVariables.map(({ names, why }) => ({
  names: new RegExp(`^(?:${names.source})$`, names.flags),
  why,
}))

/** Returns the reason why plugins cannot set the variable, or undefined if plugins can set it. */
export function whyRefused(name: string): string | undefined {
  return wholeNames.find(({ names }) => names.test(name))?.why
}
