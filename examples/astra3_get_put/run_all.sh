#!/bin/sh
# Prints all tables of docs/studies.md.
cd "$(dirname "$0")" || exit 2
exec python3 ./study reduce-scatter all-gather arbitration unroll outstanding
