#!/usr/bin/env bash
# Fetches the real Claude Code for the tests that drive it, and prints the path of its program.
#
#   .ci/client.sh DIR
#
# Nothing of it is kept in the repository: it is its maker's. Prints nothing where there is no npm or
# the registry does not have it; the tests that need it are then skipped and say so.
set -euo pipefail
version=2.1.332

case "${1:-}" in
  "" | -*) echo "usage: $0 DIR" >&2; exit 2 ;;
esac
mkdir -p "$1/claude-code"
cd "$1/claude-code"
program=$PWD/node_modules/@anthropic-ai/claude-code-linux-x64/claude
if [ ! -x "$program" ]; then
  command -v npm >/dev/null || { echo "no npm: Claude Code is not fetched" >&2; exit 0; }
  # Its scripts only copy the program, which is called where it lies.
  npm install --prefix . --ignore-scripts --no-audit --no-fund --loglevel=error \
    "@anthropic-ai/claude-code@$version" >&2 || { echo "Claude Code cannot be fetched" >&2; exit 0; }
fi
[ -x "$program" ] && echo "$program"
