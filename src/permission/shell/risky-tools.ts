import type { RiskyProgram } from "./risky-program.ts"

const fd: RiskyProgram = { options: "-x|--exec -X|--exec-batch", valued: "-e -t -d -E -c -j -S -o" }
const tar: RiskyProgram = {
  options:
    "--checkpoint-action --to-command -I|--use-compress-program --rsh-command --rmt-command -F|--info-script|--new-volume-script --index-file --volno-file -g|--listed-incremental -T|--files-from",
  valued: "-f -C -X -b -H -L -N -V -K",
  leadingBundle: true,
}
const secureShell = "-o -F -E -I -S -D"

/** Programs for files and texts, for the network, and those that look after other programs. */
export const riskyTools: readonly (readonly [string, RiskyProgram])[] = [
  [
    "rg",
    { options: "--pre --hostname-bin -z|--search-zip", valued: "-e -f -g -t -T -A -B -C -m -M -d -r -E -j" },
  ],
  ["ugrep ug", { options: "--pager --filter --view --save-config --config" }],
  ["ag ack bat batcat delta", { options: "--pager --output --config-file" }],
  ["sort", { options: "-o|--output --compress-program", valued: "-k -t -S -T" }],
  ["shuf iconv sdiff", { options: "-o|--output --diff-program", valued: "-n -i -f -t -w -s" }],
  ["diff3", { options: "--diff-program" }],
  ["diff", { options: "-l|--paginate", valued: "-C -U -W -x -X -I -F -L -S" }],
  ["base64 base32 basenc", { options: "-o|--output", valued: "-w -i" }],
  ["uniq", { options: "", valued: "-f -s -w", maxOperands: 1 }],
  ["xxd", { options: "", valued: "-c -g -l -o -s -n -R -name", singleDash: true, maxOperands: 1 }],
  ["tree", { options: "-o --output", valued: "-L -P -I -H -T" }],
  ["file", { options: "-C|--compile -m|--magic-file", valued: "-f -F -P -e" }],
  ["csplit", { options: "-f|--prefix -b|--suffix-format", valued: "-n" }],
  ["split", { options: "--filter" }],
  [
    "patch",
    { options: "-o|--output -r|--reject-file -e|--ed -B|--prefix -z|--suffix", valued: "-p -F -d -i" },
  ],
  ["install", { options: "--strip-program", valued: "-m -o -g -t -S" }],
  ["dd", { options: "", operand: /^(?!of=)/ }],
  ["find", { options: "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls", singleDash: true }],
  ["fd fdfind", fd],
  ["tar gtar bsdtar", tar],
  ["cpio", { options: "-F|--file -O --rsh-command -o|--create", valued: "-D -H -C" }],
  [
    "zip",
    { options: "-T|--test -TT|--unzip-command -O|--out|--output-file -lf|--logfile-path -b|--temp-path" },
  ],
  ["7z 7za 7zz", { options: "-o* -w* -si* -so*", singleDash: true }],
  ["zstd", { options: "-o --output-dir-flat --output-dir-mirror" }],
  [
    "gpg gpg2",
    {
      options:
        "-o|--output --exec-path --agent-program --dirmngr-program --photo-viewer --options --log-file --logger-file --status-file --homedir --attribute-file --keyring",
      valued: "-u -r -N",
      harmless: "--export --list-keys",
    },
  ],
  [
    "openssl",
    {
      options: "-out* -engine -config -provider -provider-path -writerand -keyout -CAcreateserial",
      singleDash: true,
    },
  ],
  ["date", { options: "-s|--set", valued: "-d -f -r", operand: /^\+/ }],
  ["hostname", { options: "-F|--file -b|--boot", operand: /^$/ }],
  [
    "less",
    {
      options: "-o|-O|--log-file|--LOG-FILE -k|--lesskey-file|--lesskey-src|--lesskey-content -T|--tag-file",
      valued: "-b -h -j -p -P -t -x -y -z",
      // `+` begins a command of its own, which may be one for a shell.
      operand: /^(?!\+)/,
    },
  ],
  ["man", { options: "-P|--pager -H|--html -C|--config-file", valued: "-M -s -S -e -L -m -p -r -R" }],
  ["info", { options: "-o|--output --dribble --restore --init-file", valued: "-f -n -d -k" }],
  ["fzf sk", { options: "--preview --bind --history", whole: true }],
  [
    "curl",
    {
      options:
        "-o|--output -O|--remote-name|--remote-name-all -K|--config -D|--dump-header -c|--cookie-jar --trace --trace-ascii --stderr --output-dir --engine --libcurl --etag-save --hsts --alt-svc -J|--remote-header-name --dump-ca-embed --ssl-sessions",
      // Written otherwise than the file it means.
      operand: /^(?!file:.*[%[\]{}])/is,
      valued: "-H -d -X -u -A -e -F -T -x -b -m -w -r -E -C -y -Y -z -t -U -Q -P",
    },
  ],
  [
    "wget wget2",
    {
      options:
        "-O|--output-document -o|--output-file -a|--append-output -P|--directory-prefix -e|--execute --use-askpass --config --save-cookies --rejected-log --warc-file --warc-tempdir --warc-dedup --warc-cdx --hsts-file --hsts",
      valued: "-U -t -T -w -Q -A -R -D -I -X -l -B -i",
    },
  ],
  [
    "aria2c",
    {
      options:
        "-o|--out -d|--dir -l|--log -c --conf-path --save-session --on-download-complete --on-download-error --on-download-start --on-download-stop --on-download-pause --on-bt-download-complete --save-cookies --server-stat-of --dht-file-path",
    },
  ],
  [
    "http https xh xhs",
    { options: "-o|--output -d|--download --session --session-read-only", valued: "-A -a" },
  ],
  [
    "rsync",
    {
      options:
        "-e|--rsh --rsync-path --log-file --write-batch --only-write-batch -M|--remote-option --daemon --config --backup-dir --partial-dir -T|--temp-dir --early-input",
      valued: "-f -B",
    },
  ],
  [
    "ssh",
    {
      options: "-o -F -E -I",
      valued: "-b -c -D -e -i -J -L -l -m -O -p -Q -R -S -W -w -B",
      stopsAtOperand: true,
    },
  ],
  ["scp sftp", { options: `${secureShell} -b`, valued: "-c -i -J -l -P -X -B -R" }],
  ["ssh-keygen ssh-add", { options: "-D -f -s -S -w -e", valued: "-t -N -C -b -a -I" }],
  [
    "nc netcat ncat",
    { options: "-e|--exec -c|--sh-exec --lua-exec -o|--output -x|--hex-dump", valued: "-p -s -w -i -q -X" },
  ],
  ["socat", { options: "", operand: /^(?!.*(?:exec|system|shell|open|create|gopen|pipe|unix-l))/i }],
  ["tcpdump", { options: "-z -w -F -G -W", valued: "-i -c -s -r -B" }],
  [
    "docker nerdctl",
    {
      options: "-H|--host -c|--context --config -o|--output --iidfile --cidfile --metadata-file",
      valued: "-l",
    },
  ],
  [
    "podman",
    {
      options:
        "-c|--connection --url --remote -r --runtime --conmon --config --hooks-dir --module -o|--output --iidfile --cidfile",
    },
  ],
  [
    "kubectl oc",
    {
      options:
        "--kubeconfig -s|--server --context --cluster --enable-exec --enable-alpha-plugins --cache-dir --profile-output",
      valued: "-n",
      subcommands: {},
    },
  ],
  [
    "helm",
    {
      options:
        "--kubeconfig --kube-context --kube-apiserver --post-renderer --output-dir --registry-config --repository-config",
      valued: "-n",
      subcommands: {},
    },
  ],
  ["aws az gcloud", { options: "" }],
  ["gh", { options: "", subcommands: {}, riskySubcommands: "alias extension extensions ext" }],
  ["hg", { options: "--config --debugger --config-file", valued: "-R" }],
  ["jj", { options: "--config --config-toml --config-file", valued: "-R" }],
  ["svn", { options: "--diff-cmd --diff3-cmd --editor-cmd --config-option --config-dir", whole: true }],
  [
    "rclone restic borg",
    { options: "--config --log-file --password-command --sftp-ssh --rsh --remote-path", whole: true },
  ],
  [
    "pandoc",
    {
      options:
        "-F|--filter -L|--lua-filter -o|--output --pdf-engine --pdf-engine-opt --template --extract-media -d|--defaults --data-dir --log",
      valued: "-f -r -t -w -V -M",
    },
  ],
  ["yq", { options: "-i|--inplace|--in-place -s|--split-exp --split-exp-file", valued: "-o -p -I" }],
  ["xmllint xsltproc", { options: "-o -output -shell -load-trace", singleDash: true }],
  [
    "terraform tofu",
    { options: "-out -plugin-dir -state -state-out -backup -generate-config-out", singleDash: true },
  ],
]
