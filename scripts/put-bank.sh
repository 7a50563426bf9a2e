#!/usr/bin/env bash
# Puts what `build/bank` printed (standard input) into docs/VERDICT.md, between the lines that mark its place.
#   build/bank 6400 1 16 > one.txt; build/bank 6400 2 16 > two.txt; cat one.txt two.txt | scripts/put-bank.sh
set -euo pipefail
page=$(dirname "$0")/../docs/VERDICT.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT
printed=$(cat)
[[ $printed == *"statements changed"* ]] || { echo "standard input is no output of build/bank" >&2; exit 1; }
while IFS= read -r line; do
  case $line in
    '<!-- bank: begin -->') printf '%s\n\n%s\n\n' "$line" "$printed"; inside=1 ;;
    '<!-- bank: end -->') printf '%s\n' "$line"; inside= ;;
    *) [ -n "${inside:-}" ] || printf '%s\n' "$line" ;;
  esac
done <"$page" >"$new"
grep -q '<!-- bank: end -->' "$new" || { echo "$page does not mark where the tables go" >&2; exit 1; }
cat "$new" >"$page"
