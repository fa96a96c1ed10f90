#!/bin/sh
cd "$(dirname "$0")" || exit 2
hemiola=$(command -v "${HEMIOLA:-hemiola}") || exit 2
hemiola=$(realpath "$hemiola")
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
ring="all-reduce/ring --machine dgx-h100 --ranks 4"
"$hemiola" run $ring --sizes 64KiB:16MiB:x16 --json before.json > table.txt 2>&1 || exit
"$hemiola" run $ring --sizes 64KiB:16MiB:x16 --param channels=4 --json after.json > table.txt 2>&1 || exit
"$hemiola" diff before.json after.json --fail-above 5%
