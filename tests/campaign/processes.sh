#!/bin/bash
# processes.sh ROUNDS: two and three processes work on one store while others look at it. Every trial runs once, and
# the values are those of one process.
. "$(dirname "$0")/common.sh"
study undisturbed
values undisturbed >expected
for ((round = 0; round < $1; ++round)); do
  for workers in 2 3; do
    rm -rf store
    pids=()
    for ((w = 0; w < workers; ++w)); do
      study store 2>"said.$w" &
      pids+=($!)
    done
    looks=0
    while kill -0 "${pids[0]}" 2>/dev/null; do
      if [ -e store/study.db ]; then
        look_at store || fail "status: $(cat said)"
        looks=$((looks + 1))
      fi
      sleep 0.05
    done
    for w in "${!pids[@]}"; do wait "${pids[$w]}" || fail "round $round, process $w of $workers: $(cat "said.$w")"; done
    values store | cmp -s - expected || fail "round $round, $workers processes: other values than one process"
    again=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "attempts") at = i } NR > 1 && $at != 1' exported/trials.csv | wc -l)
    [ "$again" -eq 0 ] || fail "round $round, $workers processes: $again trials ran more than once"
  done
done
echo "processes: $1 rounds of 2 and of 3 on one store, $looks looks at the last"
exit $((failures > 0))
