#!/bin/sh
# One plan through all doors: found, proven, timed, put into a kernel, judged and, where Triton is, executed.
cd "$(dirname "$0")" || exit 2
out="$(mktemp -d)" || exit 2
trap 'rm -rf "$out"' EXIT
set -e
HEMIOLA="${HEMIOLA:-hemiola}"

echo "# explore: the best of the schedules whose data copy engines move, in four steps or in one kernel"
"$HEMIOLA" explore ag-gemm --gemm 1024,1024,512 --machine dgx-h100 --ranks 4 --realization copy-engine --degrees 4 --emit "$out/best.json" --quiet | grep '^# best'
cd "$out"
echo "# check: proven"
"$HEMIOLA" check best.json --quiet
echo "# run: timed, line by line"
"$HEMIOLA" run best.json --machine dgx-h100 --param realization=copy-engine --param prelaunch=1 --no-check --quiet | grep -v '^#' | tail -1
echo "# compile: put into a kernel that knows nothing of it"
"$HEMIOLA" compile "$OLDPWD/../kernels/gemm_persistent.py" --plan best.json -o fused.py --quiet
echo "# check: the order of memory in that kernel, and the program that its text is"
"$HEMIOLA" check fused.py
echo "# run: that text, timed; with the two barriers that hemiola_rt puts around a call"
"$HEMIOLA" run fused.py --machine dgx-h100 --param prelaunch=1 --no-check --quiet | grep -v '^#' | tail -1

# Executed by Triton's interpreter, four processes as four GPUs, where tools/test triton has installed it.
root="$OLDPWD/../.."
python="$root/build/triton/bin/python"
if "$python" -c 'import torch, triton' 2>/dev/null; then
  TRITON_INTERPRET=1 PYTHONPATH="$root/python" "$python" -m hemiola_rt fused.py --poison >executed 2>&1 || { cat executed; exit 1; }
fi
