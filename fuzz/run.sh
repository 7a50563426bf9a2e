#!/bin/sh
# Fuzzes every reader of files from outside: fuzz/run.sh [seconds for each target, 20 unless told].
# Builds in build-fuzz/; what was learnt (corpora), logs and crashing inputs stay there. Fails if anything was found.
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-20}
build=build-fuzz

compiler=${FUZZ_CXX:-$(command -v clang++-14 || command -v clang++)}
if [ -z "$compiler" ]; then
  echo "error: the fuzzers need clang++" >&2
  echo "  try  apt install clang-14 libclang-rt-14-dev" >&2
  exit 1
fi
mkdir -p $build/crashes
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$compiler" -fsanitize=fuzzer,address,undefined -x c++ - -o $build/probe 2>$build/probe.log; then
  echo "error: $compiler has no libFuzzer ($build/probe.log)" >&2
  echo "  try  apt install libclang-rt-14-dev" >&2
  exit 1
fi

generator=$(command -v ninja >/dev/null && echo Ninja || echo "Unix Makefiles")
[ -f $build/CMakeCache.txt ] || cmake -S . -B $build -G "$generator" -DCMAKE_CXX_COMPILER="$compiler" \
  -DRANKSCOPE_FUZZ=ON -DRANKSCOPE_ENGINE=OFF -DRANKSCOPE_TESTS=OFF -DRANKSCOPE_BENCH=OFF >$build/configure.log 2>&1 || {
  tail -20 $build/configure.log >&2
  exit 1
}
cmake --build $build --target fuzzers --parallel "$(nproc)" >$build/build.log 2>&1 || {
  tail -30 $build/build.log >&2
  exit 1
}

failed=0
for source in fuzz/*_fuzz.cpp; do
  target=$(basename "$source" .cpp)
  name=${target%_fuzz}
  corpus=$build/corpus/$name
  log=$build/$target.log
  mkdir -p "$corpus"
  dictionary=fuzz/seeds/$name.dict
  # A small input reaches every branch of these readers; a large one only makes each try slower. The time limit of
  # one try counts the wall clock, so it must outlast a starved machine.
  if $build/"$target" "$corpus" $([ -d "fuzz/seeds/$name" ] && echo "fuzz/seeds/$name") \
    $([ -f "$dictionary" ] && echo "-dict=$dictionary") -max_total_time="$seconds" -max_len=8192 -rss_limit_mb=2048 \
    -timeout=60 -artifact_prefix="$build/crashes/$name-" -print_final_stats=1 >"$log" 2>&1; then
    tries=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "$target: ${tries:-?} inputs in $seconds s, nothing found"
  else
    failed=1
    kept=$(sed -n 's/^.*Test unit written to *//p' "$log" | tail -1)
    what=$(sed -n -e 's/^SUMMARY: *//p' "$log" | tail -1)
    echo "$target: FAILED: ${what:-see $log}; the input is kept in ${kept:-$build/crashes}"
  fi
done
exit $failed
