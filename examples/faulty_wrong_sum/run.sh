#!/bin/sh
cd "$(dirname "$0")" || exit 2
exec "${HEMIOLA:-hemiola}" check plan.json --size 1KiB
