#!/bin/sh
folder=$(dirname "$0")
"${HEMIOLA:-hemiola}" run "$folder/job.yaml" --machine dgx-h100
