import { join, relative } from "node:path"
import { isInside } from "../util/paths.ts"
import { wildcardMatch } from "../util/wildcard.ts"

/**
 * The reason why a file requires permission even inside the worktree, and the `marker` that a pattern must contain to
 * name the file.
 */
export interface Protection {
  reason: string
  marker: string
}

/**
 * Returns the protection for a file that contains secrets, or that configures a tool, an agent or a program that starts
 * automatically. For `read`, only secrets are protected. The path is relative to the worktree, or absolute if it is
 * outside. Case, trailing dots and Unicode compatibility variants make no difference.
 */
export function protectionOf(path: string, access: "read" | "edit"): Protection | undefined {
  const segments = path
    .split("/")
    .map(foldSegment)
    .filter((segment) => segment !== "")
  const name = segments.at(-1) ?? ""
  if (isSecret(name)) return { reason: "it usually contains secrets", marker: ".env" }
  const key = keyFiles.find((pattern) => wildcardMatch(name, pattern))
  if (key !== undefined) return { reason: "it usually contains a key", marker: key.replace(/^\*/, "") }
  if (segments[0] === "proc" && name === "environ")
    return { reason: "it contains the environment of a process", marker: "environ" }
  if (access === "read" || !mayBeProtected(segments, name)) return undefined

  const joined = `/${segments.join("/")}/`
  for (const { reason, directories, files } of protectedNames) {
    const directory = directories.find((entry) => joined.includes(`/${entry}/`))
    const file = files.find((entry) => wildcardMatch(name, entry))
    if (directory !== undefined) return { reason, marker: directory }
    if (file !== undefined) return { reason, marker: file.replace(/^\*/, "").replace(/\.?\*.*$/, "") }
  }
  return undefined
}

/**
 * Returns the protection against changes for a path inside one of the directories. All paths are absolute and resolved.
 * Used, for example, for a user config directory in an unusual location, which `protectionOf` does not recognize by its
 * name.
 */
export function protectionIn(directories: readonly string[], path: string): Protection | undefined {
  const directory = directories.find((each) => isInside(path, each))
  return directory === undefined ? undefined : { reason: configures, marker: directory.toLowerCase() }
}

/**
 * Returns true if the pattern names the protected file, such as `.git/hooks/*`. A pattern that only matches the file,
 * such as `**`, does not name it.
 */
export function namesProtected(pattern: string, { marker }: Protection): boolean {
  const text = pattern.toLowerCase()
  for (let at = text.indexOf(marker); at !== -1; at = text.indexOf(marker, at + 1)) {
    const next = text[at + marker.length] ?? ""
    // `.env` also names `.env.local` and `.envrc`, but `.git` does not name `.github`.
    if (marker === ".env" || !/[a-z0-9_-]/.test(next)) return true
  }
  return false
}

const configures = "it configures Tackle or another agent"

const protectedNames: readonly {
  reason: string
  directories: readonly string[]
  files: readonly string[]
}[] = [
  {
    reason: "git runs or trusts its content",
    directories: words(".git .hg .jj .config/git"),
    files: words(".gitmodules .gitconfig .gitattributes"),
  },
  {
    reason: configures,
    directories: words(`
      .tackle .config/tackle .opencode .config/opencode .claude .agents .cursor .codex .gemini .windsurf .roo .continue
      .kiro .junie .amazonq .qwen .crush .kilocode .kilo .augment .trae .goose .github/agents .github/chatmodes
      .github/hooks .github/skills`),
    files: words(`
      tackle.json tackle.jsonc tackle.toml opencode.json opencode.jsonc .mcp.json crush.json .crush.json .roomodes
      .kilocodemodes .aider.conf.yml`),
  },
  {
    reason: "it instructs agents",
    directories: words(".clinerules .github/instructions .github/prompts"),
    files: words(`
      agents.md claude.md claude.local.md gemini.md .cursorrules .windsurfrules copilot-instructions.md agent.md
      agents.override.md qwen.md warp.md .clinerules .roorules .kilocoderules .goosehints .rules`),
  },
  {
    reason: "an editor or a hook runs its content",
    directories: words(`
      .vscode .idea .zed .devcontainer .husky .fleet .githooks .git-hooks .lefthook .helix .nvim .vim .config/nvim
      .config/helix .emacs.d .mise .config/mise`),
    files: words(`
      .envrc .pre-commit-config.* lefthook.* lefthook-local.* .lefthook.* .lefthook-local.* .simple-git-hooks.*
      .overcommit.yml .devcontainer.json *.code-workspace *.sublime-project .replit .lintstagedrc* .mise.* mise.toml
      mise.*.toml .nvim.lua .exrc.lua .lvimrc .nanorc .emacs.el .sdkmanrc`),
  },
  {
    reason: "it configures a package manager",
    directories: words(".cargo .bundle .yarn/releases .yarn/plugins .mvn gradle/wrapper"),
    files: words(`
      .npmrc .yarnrc* .pnp.* .pnpmfile.* pnpmfile.* pnpm-workspace.yaml .bazelrc bunfig.toml pip.conf pip.ini .pypirc
      .condarc .gemrc rust-toolchain rust-toolchain.toml .mavenrc`),
  },
  {
    reason: "programs run it at startup",
    directories: words(`
      .ssh .config/fish .config/autostart .config/systemd .ipython node_modules/.bin .venv/bin venv/bin .local/bin
      library/launchagents`),
    files: words(`
      .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .xprofile .xinitrc
      .xsession .xsessionrc .login .logout .screenrc .inputrc .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc
      .cshrc .tcshrc .curlrc .gdbinit .lldbinit .vimrc .exrc .nvimrc .tmux.conf .dir-locals.el .emacs pyvenv.cfg *.pth
      .wgetrc .rprofile .renviron .pryrc .irbrc .pdbrc .ghci .octaverc .sqliterc .psqlrc .ackrc .perldb .rspec
      conftest.py build.rs sitecustomize.py usercustomize.py`),
  },
]

const firstSegments: ReadonlySet<string> = new Set(
  protectedNames.flatMap(({ directories }) => directories.map((entry) => entry.split("/", 1)[0] ?? entry)),
)
const allFiles = protectedNames.flatMap(({ files }) => files)
const wholeNames: ReadonlySet<string> = new Set(allFiles.filter((entry) => !entry.includes("*")))
const namePatterns = allFiles.filter((entry) => entry.includes("*"))

/**
 * Returns true for every file that {@link protectedNames} lists, and false for nearly all other files. This fast test
 * avoids most of the slower searches.
 */
function mayBeProtected(segments: readonly string[], name: string): boolean {
  return (
    wholeNames.has(name) ||
    segments.some((segment) => firstSegments.has(segment)) ||
    namePatterns.some((pattern) => wildcardMatch(name, pattern))
  )
}

/** Common names of files with private keys or stored passwords, in lower case. */
const keyFiles = words(`
  id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk *.pem *.key *.p12 *.pfx *.jks .netrc .pgpass .git-credentials .htpasswd`)

function isSecret(name: string): boolean {
  if (name.endsWith(".env.example")) return false
  return name.startsWith(".env") || name.endsWith(".env") || name.includes(".env.")
}

/**
 * Normalizes a name as the most lenient file system does: composes characters, converts to lower case, and removes
 * zero-width characters, an alternate data stream, and trailing dots and spaces.
 */
function foldSegment(segment: string): string {
  // Most names need no change.
  if (segment === "" || /^[a-z0-9_.-]*[a-z0-9_-]$/.test(segment)) return segment
  const folded = segment
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, "")
  const name = folded.replace(/:.*$/s, "").replace(/[. ]+$/, "")
  return name === "" && !/^\.\.?$/.test(folded) ? folded : name
}

/** Returns the usual locations of keys, tokens and private data in a home directory. Most of them do not exist. */
export function homeSecrets(home: string): { path: string; protection: Protection }[] {
  return homeSecretNames.map((name) => ({ path: join(home, name), protection: homeProtection(name) }))
}

/**
 * Returns the protection for a file that is one of the {@link homeSecrets}, or is inside one of them. The path is
 * absolute. `homes` lists the spellings of the home directory.
 */
export function protectionInHome(path: string, homes: readonly string[]): Protection | undefined {
  const home = homes.find((each) => isInside(path, each))
  if (home === undefined) return undefined
  const folded = `${relative(home, path).split("/").map(foldSegment).join("/")}/`
  const name = homeSecretNames.find((each) => folded.startsWith(`${each.toLowerCase()}/`))
  return name === undefined ? undefined : homeProtection(name)
}

function homeProtection(name: string): Protection {
  return { reason: "it usually contains keys, tokens or private data", marker: name.toLowerCase() }
}

/**
 * Paths of secrets, relative to the home directory. The sandbox hides these files. Reading or changing them requires
 * permission, unless a rule names and allows them.
 */
const homeSecretNames = [
  ...words(`
    .ssh .gnupg .aws .azure .kube .oci .s3cfg .boto .databrickscfg .snowflake .docker/config.json
    .config/containers/auth.json .netrc .npmrc .yarnrc.yml .pypirc .gem/credentials .cargo/credentials
    .cargo/credentials.toml .composer/auth.json .config/composer/auth.json .m2/settings-security.xml .git-credentials
    .config/git/credentials .config/gh .config/glab-cli .config/hub .config/github-copilot .config/gcloud .config/doctl
    .config/op .config/rclone .config/sops .config/age .config/ngrok .fly .kaggle .huggingface/token
    .cache/huggingface/token .terraform.d/credentials.tfrc.json .vault-token .pgpass .my.cnf .mylogin.cnf .password-store
    .local/share/keyrings .local/share/kwalletd .config/keepassxc .config/Bitwarden .claude/.credentials.json
    .codex/auth.json .gemini/oauth_creds.json .local/share/opencode/auth.json .local/share/opencode/mcp-auth.json .mozilla
    .thunderbird snap/firefox .var/app/org.mozilla.firefox .config/google-chrome .config/google-chrome-beta
    .config/chromium snap/chromium .config/BraveSoftware .config/microsoft-edge .config/vivaldi .config/opera
    .config/Signal .config/Slack .config/discord Library/Keychains Library/Cookies Library/Safari Library/Messages
    Library/Mail .bash_history .zsh_history .local/share/fish/fish_history .python_history .node_repl_history
    .psql_history .mysql_history .sqlite_history .rediscli_history .irb_history .Xauthority .ICEauthority`),
  "Library/Application Support/Google/Chrome",
  "Library/Application Support/Chromium",
  "Library/Application Support/BraveSoftware",
  "Library/Application Support/Microsoft Edge",
  "Library/Application Support/Firefox",
  "Library/Application Support/Arc",
]

function words(text: string): string[] {
  return text.trim().split(/\s+/)
}
