#!/bin/sh
# Prints the tables of docs/studies.md; with arguments, those of the named studies.
cd "$(dirname "$0")" || exit 2
exec python3 ./study "$@"
