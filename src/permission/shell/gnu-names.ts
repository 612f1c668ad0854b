/**
 * The name of a GNU program that goes by a `g` in front where the system has another one of its name, as on macOS and
 * BSD; any other name as it is.
 */
export function gnuName(name: string): string {
  return known.has(name) ? name.slice(1) : name
}

const known: ReadonlySet<string> = new Set(
  [
    "env nohup nice stdbuf time timeout xargs find chroot kill install dd ln cp mv rm rmdir unlink shred truncate touch",
    "mkdir mkfifo mknod chmod chown chgrp tee sort shuf split csplit uniq date base64 base32 basenc cat head tail sed awk",
    "tar sync tac od nl cut paste",
  ].flatMap((names) => names.split(" ").map((name) => `g${name}`)),
)
