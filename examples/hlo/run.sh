#!/bin/sh
# A tensor-parallel layer as JAX compiled it for eight GPUs: its iteration, and its products as plans.
HEMIOLA="${HEMIOLA:-hemiola}"
here=$(dirname "$0")
module="$here/../../tests/hlo/mlp_sequence_parallel.txt"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$module" "$work/mlp.txt"
cd "$work" || exit 1
echo "# the module on eight H100"
"$HEMIOLA" run mlp.txt --machine dgx-h100 --quiet
echo "# its products, and the collectives beside them"
"$HEMIOLA" compile mlp.txt --describe
echo "# one of them as a plan: as the module does it, and in a ring"
"$HEMIOLA" compile mlp.txt --dot dot_general.9 -o serial.json
"$HEMIOLA" compile mlp.txt --dot dot_general.9 --template ag-gemm/ring -o ring.json
for plan in serial ring; do
  "$HEMIOLA" check $plan.json
  "$HEMIOLA" run $plan.json --machine dgx-h100 --engine fluid --quiet
done
