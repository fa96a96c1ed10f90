#!/bin/sh
# A long prompt, with sequence parallelism and without.
HEMIOLA="${HEMIOLA:-hemiola}"
for sequence_parallel in --sp ""; do
  # shellcheck disable=SC2086  # nothing, or one word
  "$HEMIOLA" workload make llama-70b --tp 8 $sequence_parallel --phase prefill --micro-batch 1 \
    --sequence 8192 --machine dgx-h100 --quiet
done
