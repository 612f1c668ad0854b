#!/bin/sh
# Prints the lines under the heading "Unreleased" of the file, up to the next heading.
sed -n '/^## Unreleased/,/^## [0-9]/p' "$1" | grep '^- '
