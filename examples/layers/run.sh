#!/bin/sh
# Schedules of several launches in a kernel that knows nothing of them: as waves of one grid, and as launches of one text.
cd "$(dirname "$0")" || exit 2
kernels="$PWD/../kernels"
out="$(mktemp -d)" || exit 2
trap 'rm -rf "$out"' EXIT
set -e
HEMIOLA="${HEMIOLA:-hemiola}"
cd "$out"

echo "# a product in steps: its launches are waves of one grid"
"$HEMIOLA" plan make ag-gemm/sequence --ranks 4 --param m=512 --param n=256 --param k=128 --param degree=2 --param steps=hetero -o steps.json --quiet
"$HEMIOLA" compile "$kernels/gemm_persistent.py" --plan steps.json --constexpr GROUP_M=4 --constexpr BLOCK_M=32 --constexpr BLOCK_N=32 --constexpr BLOCK_K=32 -o steps.py
sed -n '/t.work = /,/t.work.ready/p' steps.py
"$HEMIOLA" check steps.py --quiet | head -3

echo "# two products with an all-to-all between them: two launches of one text"
"$HEMIOLA" plan make gemm-a2a-gemm/direct --ranks 4 --param m=512 --param h=128 --param f=256 -o layer.json --quiet
"$HEMIOLA" compile "$kernels/gemm_persistent.py" --plan layer.json --constexpr GROUP_M=4 --constexpr BLOCK_M=32 --constexpr BLOCK_N=32 --constexpr BLOCK_K=32 -o layer.py
grep '\.launch(' layer.py
"$HEMIOLA" check layer.py --quiet | head -3

echo "# experts with a capacity: tokens of a rank for an expert are a chunk"
"$HEMIOLA" plan make moe/direct --ranks 4 --param rows=32 --param experts=2 --param n=64 --param k=64 -o experts.json --quiet
"$HEMIOLA" compile "$kernels/moe_capacity_gemm.py" --plan experts.json --constexpr BLOCK_M=32 --constexpr BLOCK_N=32 --constexpr BLOCK_K=32 -o experts.py
"$HEMIOLA" check experts.py --quiet | head -3

echo "# attention behind an all-to-all and back: tiles wait along queries and keys"
"$HEMIOLA" plan make ulysses-attention/split-kv --ranks 4 --param heads=8 --param sequence=256 --param head=16 --param tile_kv=64 -o heads.json --quiet
"$HEMIOLA" compile "$kernels/attention_split_kv.py" --plan heads.json --constexpr scale=0.25 --constexpr BLOCK_M=32 --constexpr BLOCK_N=32 -o heads.py
"$HEMIOLA" check heads.py --quiet | head -3
