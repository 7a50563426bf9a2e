# Sourced by the parts of the campaign: a folder of its own, the program, failures that are counted, and what
# "undisturbed" means.
set -u
export LC_ALL=C OMP_NUM_THREADS=1
program=${RANKSCOPE_PROGRAM:?is not set: scripts/campaign.sh sets it}
tree=${RANKSCOPE_SOURCE:?is not set: scripts/campaign.sh sets it}
model=$tree/tests/fixtures/models/bert
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
fail() {
  failures=$((failures + 1))
  echo "FAILED: $*" >&2
}

# Two scans that differ in every number, and a study of four short trials.
scan_words() { words=("$program" scan "$model" --random-tokens --samples 2 --seed "$1" --threads 1 --out "$2" --force --quiet); }
study_words() { words=("$program" study run quick rank=1,4 steps=40 batch=32 test_sequences=64 --seeds 2 --threads 1 --out "$1" --quiet); }
scan() { scan_words "$@" && "${words[@]}" >/dev/null; }
study() { study_words "$@" && "${words[@]}" >/dev/null; }

# Starts it, and kills it after a random part of the milliseconds that it takes; counts what was hit.
killed=0
kill_within() {
  "${words[@]}" >/dev/null 2>&1 &
  pid=$!
  sleep "$(awk -v r=$RANDOM -v t="$1" 'BEGIN { print r / 32768 * t * 1.1 / 1000 }')"
  kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
  wait $pid 2>/dev/null
}

# What a store holds, without what depends on the clock: ids, states, and results.
values() {
  "$program" study export "$1" --to "$work/exported" --quiet || return 1
  awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) keep[i] = $i !~ /seconds|attempts|device|reason/ }
           { line = ""; for (i = 1; i <= NF; ++i) if (keep[i]) line = line "," $i; print line }' "$work/exported/trials.csv"
}

# Looks at a study. A store that somebody is making, or that a kill hit before it had its tables, has nothing to show yet.
look_at() {
  "$program" study status "$1" >/dev/null 2>said || grep -q 'holds no study yet\|nothing is in the store yet' said
}

# Every table of a folder is one of the two whole ones. A kill in the moment of renaming leaves a whole one under its
# second name, NAME.partPID.
old_or_new() {
  for file in "$1"/metrics.csv* "$1"/samples.csv*; do
    [ -e "$file" ] || continue
    name=${file##*/} && name=${name%.part*}
    cmp -s "$file" "old/$name" || cmp -s "$file" "new/$name" || fail "$2: $file is neither the old nor the new one"
  done
}

no_parts() {
  parts=$(find "$1" -name '*.part*' | wc -l)
  [ "$parts" -eq 0 ] || fail "$2: $parts files that were not put in their places are left in $1"
}

seconds_of() {
  begun=$(date +%s%N)
  "$@"
  echo $((($(date +%s%N) - begun) / 1000000))
}
