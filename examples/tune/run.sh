#!/bin/sh
# Which chunks and tiles make an all-gather in front of a product fast, in one kernel, for two sizes.
cd "$(dirname "$0")" || exit 2
out="$(mktemp -d)" || exit 2
trap 'rm -rf "$out"' EXIT
set -e
HEMIOLA="${HEMIOLA:-hemiola}"

echo "# tune: a winner for each size"
"$HEMIOLA" tune ../kernels/gemm_persistent.py --plan ag-gemm/swizzle --machine dgx-h100 --ranks 4 --configs mine.json \
  --param m=512,1024 --param n=1024 --param k=512 --param split=1,2,4 --budget 16 -o "$out/tuned.py" --emit "$out/tuned.json" --quiet |
  grep '^# m=\|^# best\|points:'
echo "# check: the order of memory in the kernel for the larger size, and its plan"
"$HEMIOLA" check "$out/tuned_m1024.py" | sed "s|$out/||"
(cd "$out" && "$HEMIOLA" check tuned_m1024.json --quiet)
