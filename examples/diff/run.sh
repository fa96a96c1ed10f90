#!/bin/sh
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 2
ring="all-reduce/ring --machine dgx-h100 --ranks 4 --size 64KiB:16MiB:x16"
"${HEMIOLA:-hemiola}" run $ring --json before.json >/dev/null || exit 2
"${HEMIOLA:-hemiola}" run $ring --param channels=4 --json after.json >/dev/null || exit 2
"${HEMIOLA:-hemiola}" diff before.json after.json --fail-above 5%
