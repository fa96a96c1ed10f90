#!/bin/sh
# Prints a part of the tables of docs/studies.md; with arguments, the named ones.
cd "$(dirname "$0")" || exit 2
exec python3 ./study "$@"
