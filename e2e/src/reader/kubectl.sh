#!/usr/bin/env bash
# The cluster's own kubectl. Credentials may need the user's own home.
HOME=$READERS_HOME exec "$CATENA_KUBECTL" "$@"
