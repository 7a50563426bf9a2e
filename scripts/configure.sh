#!/usr/bin/env bash
# scripts/configure.sh BUILD TORCH [cmake options]: runs CMake unless BUILD was configured with the same answers.
set -euo pipefail
build=$1 torch=$2
shift 2

say() { printf 'configure: %s\n' "$*" >&2; }

options=(-DCMAKE_BUILD_TYPE=Release "$@")
case $torch in
  system) ;;
  pip)
    prefix=$(python3 -c 'import torch; print(torch.utils.cmake_prefix_path)' 2>/dev/null) || {
      say "TORCH=pip: the active python3 cannot import torch"
      say "try  activate the environment that has it, or TORCH=DIR"
      exit 1
    }
    options+=("-DCMAKE_PREFIX_PATH=$prefix")
    ;;
  *)
    if [ ! -e "$torch/share/cmake/Torch/TorchConfig.cmake" ] && [ ! -e "$torch/Torch/TorchConfig.cmake" ]; then
      say "TORCH=$torch: there is no share/cmake/Torch/TorchConfig.cmake in it"
      say "try  the folder that unpacking LibTorch gave, or TORCH=pip"
      exit 1
    fi
    options+=("-DCMAKE_PREFIX_PATH=$(cd "$torch" && pwd)")
    ;;
esac

answers="$build/.configured"
asked=$(printf '%s\n' "${options[@]}")
before=$(cat "$answers" 2>/dev/null || true)
[ "$before" = "$asked" ] && exit 0

# CMake remembers where it found Torch, so another one means starting afresh.
prefix_of() { grep '^-DCMAKE_PREFIX_PATH=' <<<"$1" || true; }
if [ -n "$before" ] && [ "$(prefix_of "$before")" != "$(prefix_of "$asked")" ]; then
  say "another LibTorch than last time: starting $build afresh"
  rm -rf "$build"
fi
# A configured folder keeps its generator: CMake refuses to change it.
if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja >/dev/null; then options+=(-G Ninja); fi
cmake -S . -B "$build" "${options[@]}"
printf '%s' "$asked" >"$answers"
