#!/usr/bin/env bash
# Runs two builds of the program on one machine and compares what they compute, byte for byte: scans of every
# fixture with parts taken out and ranks cut, paths, operator, collapse in split arithmetic, and points trained
# on the CPU with their exports. For changes that should move no number.
#   scripts/same-numbers.sh OLD NEW [FOLDER]      OLD and NEW are build folders; results stay in FOLDER
# Columns that NEW adds behind the old ones are not compared. Exits with 1 where something differs.
set -euo pipefail
old=$(realpath "${1:?usage: same-numbers.sh OLD NEW [FOLDER]}") new=$(realpath "${2:?usage: same-numbers.sh OLD NEW}")
work=${3:-$(mktemp -d)}
root=$(cd "$(dirname "$0")/.." && pwd)
models=$root/tests/fixtures/models
mkdir -p "$work"
failed=0

# Old columns of two CSV files.
same_csv() {
  local columns
  columns=$(head -n 1 "$1" | tr ',' '\n' | wc -l)
  cmp -s "$1" <(cut -d, -f"1-$columns" "$2")
}

compare() {  # NAME arguments...: runs both and compares their tables
  local name=$1
  shift
  for side in old new; do
    "${!side}/rankscope" "$@" -q --threads 2 --out "$work/$name-$side" >/dev/null 2>"$work/$name-$side.log" ||
      echo "failed" >>"$work/$name-$side.log"
  done
  for table in metrics.csv samples.csv; do
    [ -e "$work/$name-old/$table" ] || continue
    if same_csv "$work/$name-old/$table" "$work/$name-new/$table"; then
      printf 'same     %-28s %s, %d rows\n' "$name" "$table" "$(wc -l <"$work/$name-old/$table")"
    else
      printf 'DIFFERS  %-28s %s\n' "$name" "$table"
      failed=1
    fi
  done
}

for model in bert albert-groups distilbert gpt2 llama llama-rope3 mistral qwen2 roberta vit xlnet; do
  compare "scan-$model" scan "$models/$model" --random-tokens --samples 5 --max-length 14 --null \
    --off skip --off mlp --off norm --off position --off attention-skip+mlp-skip --off head:L1H0 --rank qk=2 --rank ov=2
done
compare scan-builtin scan
compare scan-float64 scan "$models/gpt2" --random-tokens --samples 3 --max-length 12 --dtype float64 --off skip
compare scan-long scan --random-tokens --samples 2 --max-length 600 --off skip+mlp
for model in bert gpt2 xlnet llama; do
  compare "paths-$model" paths "$models/$model" --random-tokens --samples 3 --max-length 12
  compare "heads-$model" paths "$models/$model" --random-tokens --samples 3 --max-length 12 --by head
  compare "operator-$model" operator "$models/$model" --random-tokens --samples 2 --max-length 10
  compare "collapse-$model" collapse "$models/$model" --random-tokens --samples 2 --max-length 10
done
compare collapse-split collapse "$models/bert" --random-tokens --samples 2 --max-length 10 --arithmetic split
compare collapse-split-llama collapse "$models/llama" --random-tokens --samples 2 --max-length 10 --arithmetic split
compare collapse-held collapse "$models/gpt2" --random-tokens --samples 2 --max-length 10 --frozen-norm --positions
compare init-split collapse --init bert-base --random-tokens --samples 1 --max-length 8 --arithmetic split

# A study on the fused CPU tile, its result and its exported weights.
for side in old new; do
  "${!side}/rankscope" study run quick steps=300 rank=1,8,16 seed=0 -q --out "$work/quick-$side" >/dev/null 2>&1
  "${!side}/rankscope" study export "$work/quick-$side" -q >/dev/null 2>&1
  for id in $(ls "$work/quick-$side/trials" | head -3); do
    "${!side}/rankscope" study export "$work/quick-$side" -q --model "$id" "$work/quick-$side/model-$id" >/dev/null
  done
done
ids=$(ls "$work/quick-old/trials")
[ "$ids" = "$(ls "$work/quick-new/trials")" ] || { echo "DIFFERS  ids of trials"; failed=1; }
for file in $(cd "$work/quick-old" && ls -d model-*/model.safetensors); do
  if cmp -s "$work/quick-old/$file" "$work/quick-new/$file"; then
    echo "same     quick/$file"
  else
    echo "DIFFERS  quick/$file"
    failed=1
  fi
done
exit $failed
