#!/bin/sh
# One step of decode and one prefill of Llama-3 70B on eight H100, and what would change them.
HEMIOLA="${HEMIOLA:-hemiola}"
decode() {
  "$HEMIOLA" workload make llama-70b --tp 8 --phase decode --micro-batch 16 --context 4096 \
    --machine dgx-h100 --launch graph --quiet "$@"
}
prefill() {
  "$HEMIOLA" workload make llama-70b --tp 8 --phase prefill --micro-batch 1 --sequence 512 \
    --machine dgx-h100 --quiet "$@"
}
what_if() {
  echo "$1 $2 $3:$("$@" | grep '^# time' | cut -c 7-)"
}
decode
echo
prefill
echo "# what if"
for phase in decode prefill; do
  what_if $phase --set link.nvlink4.bandwidth=12.5GB/s
  what_if $phase --set switch.multicast=false
  what_if $phase --without all-reduce
  what_if $phase --scale-compute 0.5
done
