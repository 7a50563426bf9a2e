#!/bin/bash
# full_disk.sh STEP [FIRST]: the disk is full from the n-th change to a file on, for n = FIRST (1 unless told),
# FIRST + STEP, ... until all succeed. Several at once, each with a FIRST of its own, share the work.
# The program must say so and fail; tables are the old or the new ones; a study goes on when there is room again.
. "$(dirname "$0")/common.sh"
step=$1 first=${2:-1}
shim=${RANKSCOPE_FAILING_WRITE:?is not set: scripts/campaign.sh sets it}
full() { (export LD_PRELOAD=$shim FAIL_WRITE=$1; shift; "$@") 2>said; }

changes_of() {
  (export LD_PRELOAD=$shim FAIL_COUNT=$work/count; "$@") || fail "undisturbed: $*"
  cat "$work/count"
}

# Where it fails, it says so in an error of ours, and does not crash.
expect_error() {
  [ "$1" -eq 0 ] && return 1
  [ "$1" -lt 128 ] || fail "$2: ended with status $1"
  grep -q '^error: ' said || fail "$2: no error, but: $(head -c 300 said)"
}

scan 0 old
changes=$(changes_of scan 1 new)
tried=0
for ((n = first; n <= changes; n += step)); do
  rm -rf target && cp -r old target
  full "$n" scan 1 target
  expect_error $? "scan, change $n" || fail "scan, change $n of $changes: it did not notice"
  old_or_new target "scan, change $n"
  no_parts target "scan, change $n"
  tried=$((tried + 1))
done
echo "full disk: $tried of $changes changes of a scan"

study undisturbed
values undisturbed >expected
changes=$(changes_of study counted)
tried=0 noticed=0
for ((n = first; n <= changes; n += step)); do
  rm -rf store
  full "$n" study store
  expect_error $? "study, change $n" && noticed=$((noticed + 1))
  tried=$((tried + 1))
  study store 2>said || fail "study, change $n: it does not go on: $(head -c 300 said)"
  values store | cmp -s - expected || fail "study, change $n: other values than undisturbed"
done
echo "full disk: $tried of $changes changes of a study, $noticed of them ended it with an error, all went on"
exit $((failures > 0))
