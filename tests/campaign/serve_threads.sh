#!/usr/bin/env bash
# The tests of `serve` against a program built with the thread sanitizer: serve_threads.sh PROGRAM.
# Needs the packages of scripts/test-web.sh, which has them after one run.
set -eu
program=$(realpath "$1")
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
cd "$(dirname "$0")/../../web"
# A sanitized server is slow: what the tests say of its speed does not count, what the sanitizer says does.
TSAN_OPTIONS="log_path=$reports/race exitcode=0" RANKSCOPE_PROGRAM=$program CHROMIUM=${CHROMIUM:-/usr/bin/chromium} \
  node --test --test-reporter=spec tests/serve.test.mjs >"$reports/tests" 2>&1 || true
grep -E '^ℹ (tests|pass|fail)' "$reports/tests"
found=$(find "$reports" -name 'race*' | wc -l)
[ "$found" -eq 0 ] || cat "$reports"/race*
echo "serve under the thread sanitizer: $found processes with reports"
[ "$found" -eq 0 ] && grep -qE '^ℹ pass [1-9]' "$reports/tests"
