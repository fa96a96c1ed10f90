#!/bin/sh
# One step of decode of Llama-3 70B on eight H100, and what would change it.
HEMIOLA="${HEMIOLA:-hemiola}"
step() {
  "$HEMIOLA" workload make llama-70b --tp 8 --phase decode --micro-batch 16 --context 4096 \
    --machine dgx-h100 --launch graph --quiet "$@"
}
step
echo "# what if"
for change in "--set link.nvlink4.bandwidth=12.5GB/s" "--without all-reduce" "--scale-compute 0.5"; do
  # shellcheck disable=SC2086  # two words
  echo "$change:$(step $change | grep '^# time' | cut -c 7-)"
done
echo "# mixture of experts, with all-to-all"
"$HEMIOLA" workload make mixtral-8x7b --tp 2 --dp 4 --ep 4 --phase prefill --micro-batch 1 \
  --sequence 1024 --machine dgx-h100 --quiet
