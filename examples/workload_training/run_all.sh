#!/bin/sh
# The same, simulated: some minutes.
exec sh "$(dirname "$0")/questions"
