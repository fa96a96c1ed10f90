#!/bin/sh
cd "$(dirname "$0")" || exit 2
exec "${HEMIOLA:-hemiola}" run ring.xml --machine dgx-h100 --size 1KiB,64KiB,1MiB
