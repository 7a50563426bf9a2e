#!/usr/bin/env bash
# Tests the report's page: it is built afresh and compared with the committed one, then driven in Chromium.
#
#   scripts/test-web.sh PROGRAM        exits 77 (skipped) where Node, Chromium or the packages cannot be had
set -euo pipefail
cd "$(dirname "$0")/../web"

skip() { printf 'test-web: skipped: %s\n' "$*"; exit 77; }

export RANKSCOPE_PROGRAM=$1
export CHROMIUM=${CHROMIUM:-/usr/bin/chromium}
command -v npm >/dev/null || skip "there is no npm"
node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' ||
  skip "Node $(node --version) is older than the 20.19 that Vite needs"
[ -x "$CHROMIUM" ] || skip "there is no $CHROMIUM"
if [ ! -e node_modules/.installed ] || [ package-lock.json -nt node_modules/.installed ]; then
  # The versions and hashes of the lock file. Not `npm ci`: it wants the packages of every platform in it, and a
  # registry need not have them all.
  npm install --no-save --silent || skip "npm cannot fetch the packages"
  touch node_modules/.installed
fi

grep -q '"resolved"' package-lock.json && { echo "package-lock.json names download addresses"; exit 1; }
npx tsc --noEmit
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
PAGE_OUT=$fresh npx vite build --logLevel error
cmp "$fresh/index.html" dist/index.html ||
  { echo "web/dist/index.html is not what web/src builds: npm run build in web/, and commit it"; exit 1; }
# Node would leave one core idle, and two are all there are on a small machine. One run in
# five failed once for a reason that was not found: a run that fails is repeated, one file after the other, and must
# pass then. The first failure stays in the log: read it.
drive() { node --test --test-concurrency="$1" --test-reporter=spec tests/*.test.mjs; }
drive "$(nproc)" || { echo "test-web: once more, one file after the other"; drive 1; }
