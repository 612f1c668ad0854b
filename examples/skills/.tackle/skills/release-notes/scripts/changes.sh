#!/bin/sh
# The lines under "Unreleased" of the file, up to the next heading.
sed -n '/^## Unreleased/,/^## [0-9]/p' "$1" | grep '^- '
