#!/usr/bin/env bash
# scripts/compilers.sh [COMPILER...]: checks every file that needs no LibTorch with several compilers, warnings as
# errors. Each file is looked at alone, as no unity build does, and nothing is generated: -fsyntax-only.
# Without arguments: GCC 12, Clang 16 and Clang 19, all of them in Debian 12. GCC reads every header from the beginning,
# which proves that a file includes what it uses. Clang has the headers of other libraries and of base/ precompiled:
# it is here for its warnings, and takes a quarter of the time so.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
[ $# -gt 0 ] || set -- g++-12 clang++-16 clang++-19

# The command lines of our own files, each once: the kernels are compiled for three instruction sets.
commands_of() {
  sed -n 's/^  "command": "\(.*\)",$/\1/p' "$1/compile_commands.json" | grep -- "-c $PWD/src/" |
    sed -e 's/ -o [^ ]*/ -fsyntax-only/' -e 's/\\"/"/g' | awk '!seen[$NF]++'
}

# precompile COMPILER BUILD COMMANDS: the headers that most files include, with their usual templates made.
precompile() {
  cat >"$2/common.h" <<'HEADER'
#include <CLI/CLI.hpp>
#include <fmt/ranges.h>
#include <regex>
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/table.h"
inline void usual_templates() {
  rankscope::Json j = rankscope::Json::parse(std::string("{}"));
  (void)j.dump(), (void)j.value(std::string(), std::string()), (void)j["a"].get<double>();
  (void)fmt::format("{} {} {} {:.2f}", 1, std::string(), std::string_view(), 2.0);
}
HEADER
  # With the options of a file of base/, less what belongs to that file.
  local options
  options=$(grep -m1 /src/base/ <<<"$3" | sed -e 's/ -c .*//' -e 's/^[^ ]* //' -e 's/-D[^ ]*_EXPORTS//')
  # shellcheck disable=SC2086
  "$1" $options -x c++-header -fpch-instantiate-templates "$2/common.h" -o "$2/common.pch"
}

for compiler in "$@"; do
  if ! command -v "$compiler" >/dev/null; then
    echo "compilers: $compiler is not installed (Debian: apt-get install ${compiler/++/})" >&2
    exit 1
  fi
  build=$PWD/build/compilers/$compiler
  mkdir -p "$build"
  CXX=$compiler CXXFLAGS='' cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER_LAUNCHER= \
    -DRANKSCOPE_ENGINE=OFF -DRANKSCOPE_TESTS=OFF -DRANKSCOPE_BENCH=OFF -DRANKSCOPE_UNITY=OFF \
    -DRANKSCOPE_WERROR=ON >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
  commands=$(commands_of "$build")
  case $compiler in
    clang*)  # What matters only to the code that is made, which a precompiled header must share, is left out.
      commands=$(sed 's/ -[fmg][^ ]*//g' <<<"$commands")
      precompile "$compiler" "$build" "$commands"
      commands=$(sed "s| -c | -include-pch $build/common.pch -fsyntax-only -c |" <<<"$commands")
      ;;
  esac
  (cd "$build" && xargs -P "$jobs" -d '\n' -n 1 sh -c <<<"$commands") || {
    echo "compilers: $compiler does not take every file" >&2
    exit 1
  }
  echo "compilers: $compiler takes $(wc -l <<<"$commands") files, each alone, without a warning"
done
