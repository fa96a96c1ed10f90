#!/bin/sh
# The iteration of training, simulated: a minute or two.
exec sh "$(dirname "$0")/questions"
