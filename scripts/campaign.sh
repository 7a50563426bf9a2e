#!/bin/bash
# The campaign that docs/RELIABILITY.md reports: scripts/campaign.sh BUILD [short|whole].
#
# short: a minute or two, part of `make test`. whole: hours; also the fuzzers (10 million inputs over all readers) and
# the suite under the sanitizers. Every part prints what it did and fails where a promise was broken.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(cd "$1" && pwd) || exit 1
size=${2:-whole}
export RANKSCOPE_SOURCE=$PWD RANKSCOPE_PROGRAM=$build/rankscope RANKSCOPE_FAILING_WRITE=$build/libfailing_write.so
failed=0
part() {
  echo "== $*"
  "$@" || { failed=1; echo "== FAILED: $*"; }
}
parts=tests/campaign
if [ "$size" = short ]; then
  part $parts/kills.sh 8
  part $parts/full_disk.sh 40
  part $parts/processes.sh 1
  part $parts/memory.sh 60 400 3000
  exit $failed
fi
part $parts/kills.sh 200 "${SEED:-$(date +%s)}"
part $parts/full_disk.sh 1
part $parts/processes.sh 20
part $parts/memory.sh 20 40 60 80 100 150 200 300 400 600 800 1200 1600 2400 3200
if [ -x "$build/fake_cluster" ]; then
  part env RANKSCOPE_FAKE_CLUSTER="$build/fake_cluster" RANKSCOPE_FAKE_STUDY="$build/fake_study" \
    "$build/test_sweep" --gtest_brief=1 --gtest_filter='Mpi.*:Crash.*' --gtest_repeat=20
else
  echo "== left out: MPI with workers killed ($build has no fake_cluster; it is built where there is an MPI)"
fi
part env FUZZ_RUNS="${FUZZ_RUNS:-1000000}" fuzz/run.sh "${FUZZ_SECONDS:-3600}"
# The whole suite where there is an engine: an hour to build on two cores.
for preset in $([ -e "$build/librankscope.so" ] && echo asan || echo asan-base) tsan-base; do
  part cmake --preset $preset
  part cmake --build --preset $preset
  part ctest --preset $preset
done
part $parts/serve_threads.py build-tsan-base/rankscope tests/fixtures 24000
exit $failed
