/**
 * The variables without those that lead out of a sandbox: sockets of agents and daemons, and what is named like a
 * credential. Where the network is closed a credential serves nothing but theft. What is `passed` stays.
 */
export function scrubEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  passed: readonly string[] = [],
): Record<string, string | undefined> {
  const leavesOut = (name: string) => ways.has(name) || credential.test(name)
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => passed.includes(name) || !leavesOut(name)),
  )
}

const ways: ReadonlySet<string> = new Set([
  "SSH_AUTH_SOCK",
  "SSH_AGENT_PID",
  "SSH_ASKPASS",
  "GPG_AGENT_INFO",
  "GNOME_KEYRING_CONTROL",
  "DBUS_SESSION_BUS_ADDRESS",
  "DBUS_SYSTEM_BUS_ADDRESS",
  "DOCKER_HOST",
  "CONTAINER_HOST",
  "XAUTHORITY",
  "WAYLAND_DISPLAY",
  "TMUX",
])

const credential =
  /(?:^|_)(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|API_KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY|CREDENTIALS?)$/i
