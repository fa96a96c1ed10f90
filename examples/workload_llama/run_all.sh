#!/bin/sh
# Prefill, and iterations of training with tensor, pipeline and data parallelism: some minutes.
HEMIOLA="${HEMIOLA:-hemiola}"
"$HEMIOLA" workload make llama-70b --tp 8 --sp --phase prefill --micro-batch 1 --sequence 8192 \
  --machine dgx-h100 --quiet
"$HEMIOLA" workload make llama-70b --tp 8 --pp 4 --dp 4 --sp --zero 1 --global-batch 64 \
  --recompute selective --machine dgx-h100:16 --quiet
"$HEMIOLA" workload make mixtral-8x7b --tp 2 --dp 8 --ep 8 --zero 1 --global-batch 32 \
  --machine dgx-h100:2 --quiet
