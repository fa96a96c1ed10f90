#!/bin/sh
# An iteration of training of Llama-3 70B on 128 H100, and what would change it. By estimates, to be
# quick: run_all.sh simulates.
exec sh "$(dirname "$0")/questions" --engine estimate --no-contention
