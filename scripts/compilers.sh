#!/usr/bin/env bash
# scripts/compilers.sh [COMPILER...]: checks every file that needs no LibTorch with several compilers, warnings as
# errors. Each file is looked at alone, as no unity build does, and nothing is generated: -fsyntax-only.
# Without arguments: GCC 12, Clang 16 and Clang 19, all of them in Debian 12; one that is not installed is named and
# left out, and only if none is there it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
[ $# -gt 0 ] || set -- g++-12 clang++-16 clang++-19

checked=0
for compiler in "$@"; do
  if ! command -v "$compiler" >/dev/null; then
    echo "compilers: $compiler is not installed (Debian: apt-get install ${compiler/++/})" >&2
    continue
  fi
  build=build/compilers/$compiler
  mkdir -p "$build"
  CXX=$compiler CXXFLAGS='' cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER_LAUNCHER= \
    -DRANKSCOPE_ENGINE=OFF -DRANKSCOPE_TESTS=OFF -DRANKSCOPE_BENCH=OFF -DRANKSCOPE_UNITY=OFF \
    -DRANKSCOPE_WERROR=ON >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
  # Each of our files once: the kernels are compiled for three instruction sets.
  commands=$(sed -n 's/^  "command": "\(.*\)",$/\1/p' "$build/compile_commands.json" | grep -- "-c $PWD/src/" |
    sed -e 's/ -o [^ ]*/ -fsyntax-only/' -e 's/\\"/"/g' | awk '!seen[$NF]++')
  (cd "$build" && xargs -P "$jobs" -d '\n' -n 1 sh -c <<<"$commands") || {
    echo "compilers: $compiler does not take every file" >&2
    exit 1
  }
  echo "compilers: $compiler takes $(wc -l <<<"$commands") files, each alone, without a warning"
  checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "compilers: none of these is installed: $*" >&2; exit 1; }
