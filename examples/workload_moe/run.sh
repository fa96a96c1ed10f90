#!/bin/sh
# Mixtral 8x7B with its experts divided among ranks: a prefill on one node, and an iteration of
# training on two, by estimates (run_all.sh simulates it).
HEMIOLA="${HEMIOLA:-hemiola}"
"$HEMIOLA" workload make mixtral-8x7b --tp 2 --dp 4 --ep 4 --phase prefill --micro-batch 1 \
  --sequence 1024 --machine dgx-h100 --quiet
echo
sh "$(dirname "$0")/questions" --engine estimate --no-contention
