#!/bin/sh
# Who moves the data of a fused kernel: copy engines, workgroups beside it, its own programs, or its stores.
cd "$(dirname "$0")" || exit 2
out="$(mktemp -d)" || exit 2
trap 'rm -rf "$out"' EXIT
set -e
HEMIOLA="${HEMIOLA:-hemiola}"
kernel="$PWD/../kernels/gemm_persistent.py"
cd "$out"
"$HEMIOLA" plan make gemm-rs/direct --ranks 4 --param m=512 --param n=512 --param k=256 --param transfer=push -o push.json --quiet

fuse() {
  echo "# compile $*"
  "$HEMIOLA" compile "$kernel" --plan push.json --constexpr BLOCK_M=64 --constexpr BLOCK_N=64 --constexpr BLOCK_K=64 --no-check --quiet "$@" -o fused.py >/dev/null
  "$HEMIOLA" check fused.py --machine dgx-h100 | head -1
  "$HEMIOLA" check fused.py --machine dgx-h100 | grep '^check'
  "$HEMIOLA" run fused.py --machine dgx-h100 --no-check --quiet | grep -v '^#' | tail -1
}

fuse --realization copy-engine
fuse --realization load-store --workgroups 8
fuse --realization co-located
fuse --store-to-peers
