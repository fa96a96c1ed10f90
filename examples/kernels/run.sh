#!/bin/sh
# What is in each of the kernels.
cd "$(dirname "$0")" || exit 2
for kernel in *.py; do
  "${HEMIOLA:-hemiola}" compile "$kernel" --describe || exit
done
