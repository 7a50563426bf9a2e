#!/bin/bash
# kills.sh COUNT [SEED]: kills scans, studies and what only writes at random moments. Every file must be the old or the
# new one, and the study must end with the values of one that nobody disturbed.
. "$(dirname "$0")/common.sh"
count=$1
RANDOM=${2:-1}

scan 0 old
long=$(seconds_of scan 1 new)
cp -r old target
for ((i = 0; i < (count + 1) / 2; ++i)); do
  scan_words $((i % 2)) target
  kill_within "$long"
  old_or_new target "scan, kill $i"
done
echo "kills: $killed of $(((count + 1) / 2)) scans were hit, of ${long} ms each"

long=$(seconds_of study undisturbed)
values undisturbed >expected
killed=0 rounds=0
for ((i = 0; i < count / 2; ++i)); do
  [ -e store ] && values store 2>/dev/null | cmp -s - expected && rm -rf store && rounds=$((rounds + 1))
  study_words store
  kill_within "$long"
  [ ! -e store/study.db ] || look_at store || fail "study, kill $i: $(cat said)"
done
study store || fail "the study after the kills"
values store | cmp - expected || fail "the study after the kills has other values"
no_parts store "the study after the kills"
echo "kills: $killed of $((count / 2)) studies were hit, of ${long} ms each, and $((rounds + 1)) came to their end"
# A page over a page, which takes so short that only a quarter of the kills find it.
"$program" report old --out old.html --quiet && "$program" report new --out new.html --quiet || fail "report"
cp old.html page.html
long=$(seconds_of "$program" report new --out page.html --quiet)
killed=0
for ((i = 0; i < count; ++i)); do
  words=("$program" report "$([ $((i % 2)) -eq 0 ] && echo old || echo new)" --out page.html --quiet)
  kill_within "$long"
  cmp -s page.html old.html || cmp -s page.html new.html || fail "page, kill $i: it is neither the old nor the new one"
done
echo "kills: $killed of $count pages were hit, of ${long} ms each"
exit $((failures > 0))
