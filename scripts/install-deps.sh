#!/usr/bin/env bash
# Installs what Rankscope needs on Debian 12, and nothing that is there already.
#
#   scripts/install-deps.sh [build|test|fuzz|compilers|deb]
#     build: to build and run     test: the tests too     fuzz: clang with its sanitizers
#     compilers: those of `make compilers`     deb: what packs a Debian package
#
# Safe to run again: with nothing missing it only asks the package database, needs no root and takes no time.
# TORCH=DIR or TORCH=pip (see the Makefile) brings its own LibTorch, so the packaged one is left out.
set -euo pipefail

# package[:command]: the command, found anywhere on PATH, will do as well as the package.
build_packages=(
  g++:g++ cmake:cmake ninja-build:ninja pkg-config:pkg-config
  libopenblas-openmp-dev libcli11-dev nlohmann-json3-dev libfmt-dev libicu-dev libonig-dev libssl-dev libbenchmark-dev
  libtomlplusplus-dev libsqlite3-dev  # studies and their store
  libopenmpi-dev openmpi-bin          # studies over machines
  libcairo2-dev                       # figures for papers
)
torch_packages=(libtorch-dev)
test_packages=(
  libgtest-dev
  sqlite3:sqlite3                       # makes stores that nobody should trust
  npm:npm ca-certificates               # the report's page; one test fetches a published model
  chromium:chromium                     # shows the page to its tests
)
fuzz_packages=(clang-14:clang-14 libclang-rt-14-dev)
compiler_packages=(g++-12:g++-12 clang-16:clang++-16 clang-19:clang++-19)
deb_packages=(dpkg-dev:dpkg-shlibdeps)

say() { printf 'install-deps: %s\n' "$*" >&2; }

wanted=("${build_packages[@]}")
[ "${TORCH:-system}" = system ] && wanted+=("${torch_packages[@]}")
case "${1:-test}" in
  build) ;;
  test) wanted+=("${test_packages[@]}") ;;
  fuzz) wanted+=("${fuzz_packages[@]}") ;;
  compilers) wanted+=("${compiler_packages[@]}") ;;
  deb) wanted+=("${deb_packages[@]}") ;;
  *) say "expected build, test, fuzz, compilers or deb, but got \"$1\""; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null; then
  say "this is not a Debian system; please have these ready by other means: ${wanted[*]%%:*}"
  exit 0  # CMake will name what it cannot find
fi

installed=" $(dpkg-query -W -f='${db:Status-Status}=${Package} ' "${wanted[@]%%:*}" 2>/dev/null || true)"
missing=()
for entry in "${wanted[@]}"; do
  [[ $installed == *" installed=${entry%%:*} "* ]] && continue
  [[ $entry == *:* ]] && command -v "${entry#*:}" >/dev/null && continue
  missing+=("${entry%%:*}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "these packages are missing and installing them needs root: ${missing[*]}"
    say "try, as root:  apt-get install --no-install-recommends ${missing[*]}"
    exit 1
  fi
  say "installing packages needs root: using sudo"
  as_root=(sudo)
fi

say "installing ${#missing[@]} packages: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
say "done"
