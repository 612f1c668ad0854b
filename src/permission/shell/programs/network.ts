import type { ProgramTable } from "../program.ts"

/** Programs for the network, containers, clouds and encryption. */
export const networkPrograms: ProgramTable = [
  [
    "curl",
    {
      version: "--version",
      writes:
        "-o|--output -D|--dump-header -c|--cookie-jar --trace --trace-ascii --stderr --output-dir --libcurl --etag-save --hsts --alt-svc --dump-ca-embed --ssl-sessions",
      risks: "-O|--remote-name|--remote-name-all -K|--config --engine -J|--remote-header-name --expand-*",
      valued: "-H -d -X -u -A -e -x -b -m -r -E -C -y -Y -z -t -U -Q -P",
      values: [
        {
          options: "-w|--write-out",
          harmless: /^(?!@)(?!.*%output\{)/is,
          writes: /%output\{(?:>>)?([^}]*)/gi,
        },
        // `curl` expands braces and brackets in the file name.
        { options: "-T|--upload-file", harmless: /^[^{}[\]]*$/, reads: /(?:^|[{,])([^{},[]+)/g },
        { options: "-F|--form", reads: /[=;,](?:headers=)?[@<]?"?([^=@<>";,]+)/g },
        // `%NAME` and `name@file` copy an environment variable or a file into the request.
        { options: "--variable", harmless: /^\w+=/ },
      ],
      downloads: { with: "-O|--remote-name|--remote-name-all" },
      into: "--output-dir",
      spreads: { with: "-J|--remote-header-name" },
      // Excludes `file:` URLs with escapes or globs, which hide the file's path.
      operand: /^(?!file:.*[%[\]{}])/is,
      remember: "exact",
    },
  ],
  [
    "wget wget2",
    {
      version: "--version",
      writes:
        "-O|--output-document -o|--output-file -a|--append-output -P|--directory-prefix --save-cookies --rejected-log --warc-file --warc-tempdir --hsts-file",
      risks: "-e|--execute --use-askpass --config --warc-dedup --warc-cdx --hsts",
      valued: "-U -t -T -w -Q -A -R -D -I -X -l -B -i",
      downloads: { unless: "-O|--output-document --spider" },
      into: "-P|--directory-prefix",
      spreads: {
        with: "-r|--recursive -m|--mirror -p|--page-requisites -x|--force-directories -i|--input-file -F|--force-html --content-disposition --trust-server-names --metalink-file --input-metalink",
      },
      remember: "exact",
    },
  ],
  [
    "aria2c",
    {
      writes: "-o|--out -d|--dir -l|--log --save-session --save-cookies --server-stat-of --dht-file-path",
      risks:
        "-c --conf-path --on-download-complete --on-download-error --on-download-start --on-download-stop --on-download-pause --on-bt-download-complete",
    },
  ],
  [
    "http https xh xhs",
    { writes: "-o|--output --session", risks: "-d|--download --session-read-only", valued: "-A -a" },
  ],
  [
    "ssh",
    {
      writes: "-E",
      risks: "-o -F -I",
      valued: "-b -c -D -e -i -J -L -l -m -O -p -Q -R -S -W -w -B",
      stopsAtOperand: true,
      runsAfter: "",
      remember: "exact",
    },
  ],
  [
    "scp",
    {
      risks: "-o -F -E -I -S -D -b",
      valued: "-c -i -J -l -P -X -B -R",
      remember: "exact",
      directories: { follows: /^/ },
      operands: "copies",
    },
  ],
  [
    "sftp",
    {
      risks: "-o -F -E -I -S -D -b",
      valued: "-c -i -J -l -P -X -B -R",
      input: { always: true },
      remember: "exact",
    },
  ],
  ["lftp ftp tnftp telnet smbclient", { risks: "-c -e -f", input: { always: true }, remember: "exact" }],
  ["ssh-keygen ssh-add", { risks: "-D -f -s -S -w -e", valued: "-t -N -C -b -a -I" }],
  [
    "rsync",
    {
      writes: "--log-file --write-batch --only-write-batch --backup-dir --partial-dir -T|--temp-dir",
      risks: "-e|--rsh --rsync-path -M|--remote-option --daemon --config --early-input",
      valued: "-f -B",
      remember: "exact",
      directories: {},
      operands: "copies",
      rewrites: "--remove-source-files",
      dryRun: "-n|--dry-run --list-only",
    },
  ],
  [
    "nc netcat ncat",
    {
      writes: "-o|--output -x|--hex-dump",
      risks: "-e|--exec -c|--sh-exec --lua-exec",
      valued: "-p -s -w -i -q -X",
    },
  ],
  ["socat", { risks: "", operand: /^(?!.*(?:exec|system|shell|open|create|gopen|pipe|unix-l))/i }],
  ["tcpdump", { writes: "-w", risks: "-z -F -G -W", valued: "-i -c -s -r -B" }],
  [
    "docker nerdctl",
    {
      version: "--version",
      writes: "-o|--output --iidfile --cidfile --metadata-file",
      risks: "-H|--host -c|--context --config",
      valued: "-l",
      runsAfter: "exec|run",
      actions: { cp: { operands: "copies" }, "container cp": { operands: "copies" } },
      remember: 2,
      longer: "compose image container",
      exact: "context",
      directories: { when: /^(?:build|run|cp|create)$/ },
    },
  ],
  [
    "podman",
    {
      version: "--version",
      writes: "-o|--output --iidfile --cidfile",
      risks: "-c|--connection --url --remote -r --runtime --conmon --config --hooks-dir --module",
      actions: { cp: { operands: "copies" } },
      runsAfter: "exec|run",
      remember: 2,
      directories: { when: /^(?:build|run|cp|create)$/ },
    },
  ],
  [
    "kubectl oc",
    {
      writes: "--cache-dir --profile-output",
      risks: "--kubeconfig -s|--server --context --cluster --enable-exec --enable-alpha-plugins",
      valued: "-n",
      subcommands: {},
      actions: { cp: { operands: "copies" } },
      runsAfter: "exec|run",
      remember: 2,
      exact: "debug edit proxy",
    },
  ],
  [
    "helm",
    {
      writes: "--output-dir",
      risks:
        "--kubeconfig --kube-context --kube-apiserver --post-renderer --registry-config --repository-config",
      valued: "-n",
      subcommands: {},
      remember: 2,
      exact: "repo registry",
    },
  ],
  [
    "aws",
    {
      version: "--version",
      risks: "",
      actions: {
        "s3 cp": { operands: "copies" },
        "s3 mv": { operands: "moves" },
        "s3 sync": { operands: "copies" },
      },
      remember: 3,
    },
  ],
  ["az gcloud", { risks: "", remember: 3 }],
  [
    "terraform tofu",
    {
      writes: "-out -state -state-out -backup -generate-config-out",
      risks: "-plugin-dir",
      singleDash: true,
      actions: { fmt: { operands: "changes", spreads: { unlessOperands: true }, dryRun: "-check" } },
      remember: 2,
    },
  ],
  [
    "rclone restic borg",
    {
      writes: "--log-file",
      risks: "--config --password-command --sftp-ssh --rsh --remote-path",
      actions: {
        copy: { operands: "copies" },
        copyto: { operands: "copies" },
        move: { operands: "moves" },
        moveto: { operands: "moves" },
        sync: { operands: "copies" },
      },
      whole: true,
    },
  ],
  [
    "gpg gpg2",
    {
      writes: "-o|--output --log-file --logger-file --status-file --attribute-file",
      risks: "--exec-path --agent-program --dirmngr-program --photo-viewer --options --homedir --keyring",
      valued: "-u -r -N",
      harmless: "--export --list-keys",
    },
  ],
  [
    "openssl",
    {
      version: "version",
      writes: "-out* -writerand -keyout",
      risks: "-engine -config -provider -provider-path -CAcreateserial",
      singleDash: true,
    },
  ],
  ["vagrant", { runsAfter: "-c|--command" }],
]
