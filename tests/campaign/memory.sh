#!/bin/bash
# memory.sh MEGABYTES...: commands with no more address space than that. They work, or say what is missing; whatever
# was there before stays whole.
. "$(dirname "$0")/common.sh"
scan 0 old
scan 1 new
printf '{"text": "the whale"}\n' >in.jsonl
crashed=0 worked=0 refused=0
for megabytes in "$@"; do
  for command in "inspect $model" "tokenize $tree/models/builtin --jsonl in.jsonl" "report old --out page.html" \
    "scan $model --random-tokens --samples 2 --seed 1 --threads 1 --out target --force --quiet"; do
    rm -rf target && cp -r old target
    (ulimit -v $((megabytes * 1024)); exec timeout 120 "$program" $command) >/dev/null 2>said
    status=$?
    if [ $status -eq 0 ]; then worked=$((worked + 1)); elif [ $status -ge 124 ]; then
      crashed=$((crashed + 1))
      # What cannot even load its libraries says so in the loader's words.
      grep -q 'error while loading shared libraries' said || fail "$megabytes MB, ${command%% *}: status $status: $(head -c 200 said)"
    else
      refused=$((refused + 1))
      [ -s said ] || fail "$megabytes MB, ${command%% *}: failed without a word"
    fi
    old_or_new target "$megabytes MB"
    no_parts target "$megabytes MB"
  done
done
echo "memory: $worked worked, $refused were refused with a reason, $crashed could not load their libraries"
exit $((failures > 0))
