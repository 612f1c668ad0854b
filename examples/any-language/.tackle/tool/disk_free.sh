#!/bin/sh
# Returns the free disk space of the project. Needs no JSON library: it reads only the id of the call.
if [ "${1:-}" = "--describe" ]; then
  cat <<'MANIFEST'
{
  "name": "disk_free",
  "description": "Says how many kilobytes are free on the disk of the project.",
  "parameters": { "type": "object", "properties": {} },
  "timeout": 10000
}
MANIFEST
  exit
fi

read -r call
id=$(printf '%s' "$call" | sed 's/^{"type":"call","id":"\([A-Za-z0-9_]*\)".*/\1/')
free=$(df -Pk . | awk 'NR == 2 { print $4 }')
case $free in
  '' | *[!0-9]*) printf '{"type":"error","id":"%s","message":"df did not say what is free."}\n' "$id" ;;
  *) printf '{"type":"result","id":"%s","title":"disk","output":"%s KB are free."}\n' "$id" "$free" ;;
esac
