/**
 * A filter for system calls that bubblewrap loads before the command starts, as the kernel's own format. Mounts and
 * namespaces cannot keep a command from these:
 *
 * - sockets of any family but IPv4, IPv6 and netlink: a Unix socket is reached through the file system, also one that
 *   may only be read, and behind it sit Docker, the key agent and the desktop; `AF_VSOCK` knows no namespaces at all;
 * - io_uring, which opens sockets without the call that is looked at here;
 * - user namespaces of its own, in which it would be root and could move mounts out of the way;
 * - the kernel's key rings, which belong to the user and not to a namespace;
 * - typing into a terminal (`TIOCSTI`, `TIOCLINUX`).
 *
 * Refused calls fail with EPERM, or with ENOSYS where programs then take another way. Undefined for processors whose
 * numbers of system calls are not known here.
 */
export function seccompFilter(architecture: string): Buffer | undefined {
  const numbers = systems[architecture]
  return numbers && assemble(program(numbers))
}

interface Numbers {
  /** AUDIT_ARCH_… of linux/audit.h. */
  audit: number
  socket: number
  clone: number
  unshare: number
  setns: number
  ioctl: number
  addKey: number
  requestKey: number
  keyctl: number
  /** Calls from here on belong to another convention of the same processor (x32). */
  foreign?: number
}

/** From the kernel's tables of system calls. */
const systems: Readonly<Record<string, Numbers>> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    clone: 56,
    unshare: 272,
    setns: 308,
    ioctl: 16,
    addKey: 248,
    requestKey: 249,
    keyctl: 250,
    foreign: 0x40000000,
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    clone: 220,
    unshare: 97,
    setns: 268,
    ioctl: 29,
    addKey: 217,
    requestKey: 218,
    keyctl: 219,
  },
}

/** The same numbers on every processor. */
const ioUring = [425, 426, 427]
const clone3 = 435

const families = { inet: 2, inet6: 10, netlink: 16 }
const newUserNamespace = 0x10000000
const terminalInput = [0x5412, 0x541c]

/** Offsets in `struct seccomp_data`; arguments are 64 bits wide and the low half comes first. */
const offsets = { number: 0, audit: 4, argument: (index: number) => 16 + 8 * index }

const verdicts = { allow: 0x7fff0000, refuse: 0x00050001, missing: 0x00050026 }

/** What the filter does one after the other, until a verdict. */
type Step =
  /** Looks at this word from now on. */
  | { load: number }
  /** A verdict where the word fits the value. */
  | { when: keyof typeof comparisons; value: number; give: number }
  /** Steps for words of this value alone; they end with a verdict. */
  | { only: number; steps: Step[] }
  | { verdict: number }

function program(numbers: Numbers): Step[] {
  const { audit, socket, clone, unshare, setns, ioctl, addKey, requestKey, keyctl, foreign } = numbers
  const { allow, refuse, missing } = verdicts
  const is = (value: number, give: number): Step => ({ when: "equal", value, give })
  const flags = (call: number, mask: number): Step => ({
    only: call,
    steps: [{ load: offsets.argument(0) }, { when: "anyBit", value: mask, give: refuse }, { verdict: allow }],
  })
  return [
    { load: offsets.audit },
    { when: "different", value: audit, give: refuse },
    { load: offsets.number },
    ...(foreign === undefined ? [] : [{ when: "atLeast", value: foreign, give: refuse } as const]),
    ...[...ioUring, clone3].map((call) => is(call, missing)),
    ...[setns, addKey, requestKey, keyctl].map((call) => is(call, refuse)),
    flags(clone, newUserNamespace),
    flags(unshare, newUserNamespace),
    {
      only: socket,
      steps: [
        { load: offsets.argument(0) },
        ...Object.values(families).map((family) => is(family, allow)),
        { verdict: refuse },
      ],
    },
    {
      only: ioctl,
      steps: [
        { load: offsets.argument(1) },
        ...terminalInput.map((request) => is(request, refuse)),
        { verdict: allow },
      ],
    },
    { verdict: allow },
  ]
}

/** One of the kernel: what it does, how many to pass over if its comparison holds and if not, its value. */
type Instruction = readonly [code: number, yes: number, no: number, value: number]

const loadWord = 0x20
const answer = 0x06
const jumpIfEqual = 0x15

/** How a comparison leads to the verdict behind it, or past it. */
const comparisons = {
  equal: { code: jumpIfEqual, yes: 0, no: 1 },
  different: { code: jumpIfEqual, yes: 1, no: 0 },
  atLeast: { code: 0x35, yes: 0, no: 1 },
  anyBit: { code: 0x45, yes: 0, no: 1 },
}

function instructions(step: Step): Instruction[] {
  if ("load" in step) return [[loadWord, 0, 0, step.load]]
  if ("verdict" in step) return [[answer, 0, 0, step.verdict]]
  if ("only" in step) {
    const inner = step.steps.flatMap(instructions)
    return [[jumpIfEqual, 0, inner.length, step.only], ...inner]
  }
  const { code, yes, no } = comparisons[step.when]
  return [
    [code, yes, no, step.value],
    [answer, 0, 0, step.give],
  ]
}

/** `struct sock_filter`: two bytes of code, one each of the ways to jump, four of a value. */
function assemble(steps: readonly Step[]): Buffer {
  const all = steps.flatMap(instructions)
  const bytes = Buffer.alloc(all.length * 8)
  for (const [index, [code, yes, no, value]] of all.entries()) {
    bytes.writeUInt16LE(code, index * 8)
    bytes.writeUInt8(yes, index * 8 + 2)
    bytes.writeUInt8(no, index * 8 + 3)
    bytes.writeUInt32LE(value, index * 8 + 4)
  }
  return bytes
}
