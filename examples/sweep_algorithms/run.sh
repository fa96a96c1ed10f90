#!/bin/sh
cd "$(dirname "$0")" || exit 2
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT
cp sweep.yaml "$folder" && cd "$folder" || exit 2
"${HEMIOLA:-hemiola}" sweep sweep.yaml --threads 2 --output results.sqlite
