#!/bin/sh
# Prints one table; with arguments, those of the named studies.
cd "$(dirname "$0")" || exit 2
exec python3 ./study "$@"
