#!/bin/sh
# Fuzzes every reader of files from outside: fuzz/run.sh [seconds for each target, 20 unless told].
# Builds in build-fuzz/; what was learnt (corpora), logs and crashing inputs stay there. Fails if anything was found.
# FUZZ_RUNS=N ends each after N inputs, FUZZ_ONLY="csv http" takes only these.
# Printed for each: inputs tried, how many of them were read to their end without an error, and how many edges of the
# linked readers were covered (the count of all edges includes code that no input of this kind can reach).
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

# One reader: a line of the table, or what was found.
fuzz_one() {
  name=$1
  target=${name}_fuzz
  corpus=$build/corpus/$name
  log=$build/$target.log
  mkdir -p "$corpus"
  dictionary=fuzz/seeds/$name.dict
  # A small input reaches every branch of these readers; a large one only makes each try slower. The time limit of
  # one try counts the wall clock, so it must outlast a starved machine.
  if $build/"$target" "$corpus" $([ -d "fuzz/seeds/$name" ] && echo "fuzz/seeds/$name") \
    $([ -f "$dictionary" ] && echo "-dict=$dictionary") -max_total_time="$seconds" -runs="${FUZZ_RUNS:--1}" \
    -max_len=8192 -rss_limit_mb=2048 -timeout=60 -artifact_prefix="$build/crashes/$name-" -print_final_stats=1 \
    >"$log" 2>&1; then
    stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
    tries=$(stat number_of_executed_units)
    edges=$(sed -n 's/.*Loaded 1 modules *(\([0-9]*\) inline.*/\1/p' "$log" | head -1)
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    printf '%-12s %12s %8s %8s%% %14s\n' "$name" "$tries" "$(stat average_exec_per_sec)" \
      "$(awk -v a="$(stat accepted_units)" -v t="$tries" 'BEGIN { printf "%.1f", (t > 0) ? 100 * a / t : 0 }')" \
      "$covered of $edges"
  else
    kept=$(sed -n 's/^.*Test unit written to *//p' "$log" | tail -1)
    what=$(sed -n -e 's/^SUMMARY: *//p' "$log" | tail -1)
    echo "$target: FAILED: ${what:-see $log}; the input is kept in ${kept:-$build/crashes}"
    return 1
  fi
}

# Two readers at a time: a fuzzer keeps one core busy.
printf '%-12s %12s %8s %9s %14s\n' reader inputs "per s" accepted "edges covered"
failed=0
waiting=
for source in fuzz/*_fuzz.cpp; do
  name=$(basename "$source" _fuzz.cpp)
  [ -z "${FUZZ_ONLY:-}" ] || case " $FUZZ_ONLY " in *" $name "*) ;; *) continue ;; esac
  fuzz_one "$name" &
  if [ -n "$waiting" ]; then wait "$waiting" || failed=1; fi
  waiting=$!
done
if [ -n "$waiting" ]; then wait "$waiting" || failed=1; fi
exit $failed
