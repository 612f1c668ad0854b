/**
 * Returns a system call filter in the kernel's format. bubblewrap loads it before the command starts. The filter
 * refuses what mounts and namespaces cannot prevent:
 *
 * - sockets other than IPv4, IPv6 and netlink: Unix sockets, even in read-only directories, reach Docker, the key agent
 *   and the desktop, and `AF_VSOCK` ignores namespaces;
 * - io_uring, which opens sockets without the filtered call;
 * - new user namespaces, in which the command would be root and could move mounts;
 * - the kernel key rings, which belong to the user and not to a namespace;
 * - input into a terminal (`TIOCSTI`, `TIOCLINUX`).
 *
 * Refused calls fail with EPERM, or with ENOSYS if programs have a fallback for the call. Returns undefined for
 * processors whose system call numbers are unknown.
 */
export function seccompFilter(architecture: string): Buffer | undefined {
  const numbers = systems[architecture]
  return numbers && assemble(program(numbers))
}

interface Numbers {
  /** AUDIT_ARCH_… constant from linux/audit.h. */
  audit: number
  socket: number
  clone: number
  unshare: number
  ioctl: number
  /** Numbers of setns, add_key, request_key and keyctl. */
  refused: readonly number[]
  /**
   * First number of a second ABI of the same processor (x32). The filter refuses this number and all higher numbers.
   */
  foreign?: number
}

/** Numbers keyed by architecture, from the kernel's system call tables. */
const systems: Readonly<Record<string, Numbers>> = {
  x64: {
    audit: 0xc000003e,
    socket: 41,
    clone: 56,
    unshare: 272,
    ioctl: 16,
    refused: [308, 248, 249, 250],
    foreign: 0x40000000,
  },
  arm64: {
    audit: 0xc00000b7,
    socket: 198,
    clone: 220,
    unshare: 97,
    ioctl: 29,
    refused: [268, 217, 218, 219],
  },
}

/** System call numbers that are identical on all processors. */
const ioUring = [425, 426, 427]
const clone3 = 435

const families = { inet: 2, inet6: 10, netlink: 16 }
const newUserNamespace = 0x10000000
const terminalInput = [0x5412, 0x541c]

/** Offsets in `struct seccomp_data`. Arguments have 64 bits, with the low half first. */
const offsets = { number: 0, audit: 4, argument: (index: number) => 16 + 8 * index }

const verdicts = { allow: 0x7fff0000, refuse: 0x00050001, missing: 0x00050026 }

/** A step of the filter. Steps run in order until one returns a verdict. */
type Step =
  /** Loads a word for the comparisons that follow. */
  | { load: number }
  /** Returns a verdict if the comparison is true. */
  | { when: keyof typeof comparisons; value: number; give: number }
  /** Runs the steps if the word equals `value`. The steps end with a verdict. */
  | { only: number; steps: Step[] }
  | { verdict: number }

function program(numbers: Numbers): Step[] {
  const { audit, socket, clone, unshare, ioctl, refused, foreign } = numbers
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
    ...refused.map((call) => is(call, refuse)),
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

/**
 * A kernel instruction: operation code, number of instructions to skip if the comparison is true, number to skip if it
 * is false, and operand.
 */
type Instruction = readonly [code: number, yes: number, no: number, value: number]

const loadWord = 0x20
const answer = 0x06
const jumpIfEqual = 0x15

/** Opcodes and jumps for the comparisons. Each comparison jumps to the verdict that follows, or skips the verdict. */
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

/**
 * Encodes each instruction as a `struct sock_filter`: two bytes of code, one byte for each jump, and four bytes of
 * operand.
 */
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
