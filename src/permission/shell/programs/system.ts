import type { ProgramTable } from "../program.ts"

/** Programs that show or control the system. */
export const systemPrograms: ProgramTable = [
  [
    "date",
    {
      risks: "-s|--set",
      valued: "-f -r",
      operand: /^\+/,
      operands: "text",
      readOnly: {
        options: "-u -R -I? -d: --utc --universal --date= --iso-8601? --rfc-3339= --rfc-email",
        operand: /^\+/,
      },
    },
  ],
  ["hostname", { risks: "-F|--file -b|--boot", operand: /^$/ }],
  ["uname", { operands: "text", readOnly: "-a -s -n -r -v -m -p -i -o --all" }],
  ["whoami arch", { operands: "text", readOnly: { options: "", maxOperands: 0 } }],
  ["id", { operands: "text", readOnly: "-u -g -G -n -r -z --user --group --groups --name" }],
  ["nproc", { operands: "text", readOnly: { options: "--all", maxOperands: 0 } }],
  ["uptime", { operands: "text", readOnly: { options: "-p -s --pretty --since", maxOperands: 0 } }],
  // `sleep` only waits, and the time limit of the call applies.
  ["sleep", { operands: "text", readOnly: { options: "", operand: /^\d+(?:\.\d+)?[smhd]?$/ } }],
  [
    "kill pkill killall mount defaults gsettings dconf launchctl chsh update-alternatives sysctl networksetup scutil",
    { remember: "exact" },
  ],
  ["crontab", { input: { unless: "-l -r -e -V" }, remember: "exact" }],
]
