#!/bin/sh
# scripts/check-binaries.sh FOLDER...: every program and library of ours directly in these folders is hardened.
#
# - Libraries are looked for beside the binary or at absolute places: an empty or relative entry is the working
#   directory, where a model's author may have left a library of the right name.
# - Tables of addresses are filled at the start and read-only from then on (full RELRO), stacks hold no code,
#   programs are position independent.
# - The program and both libraries were compiled with guarded stacks and checked copies: they refer to their handlers.
#
# RANKSCOPE_CHECK=linked leaves the last one out, for builds that are not optimised or carry sanitizers.
set -u
export LC_ALL=C
failed=0
checked=0
say() {
  echo "$1: $2" >&2
  failed=1
}

check() {
  file=$1
  dynamic=$(readelf -dW "$file" 2>/dev/null) || return 0
  case $dynamic in *NEEDED*) ;; *) return 0 ;; esac
  checked=$((checked + 1))
  paths=$(echo "$dynamic" | sed -n 's/.*(R\(UN\)*PATH).*\[\(.*\)\]$/\2/p')
  if [ -n "$paths" ]; then
    # A colon more at both ends, so that an empty entry is two colons wherever it stands.
    case ":$paths:" in *::*) say "$file" "an empty entry in its library path: [$paths]" ;; esac
    echo "$paths" | tr ':' '\n' | while read -r entry; do
      case $entry in /* | '$ORIGIN' | '$ORIGIN/'* | '') ;; *) echo "$entry" ;; esac
    done | grep -q . && say "$file" "a relative entry in its library path: [$paths]"
  fi
  echo "$dynamic" | grep -Eq '\(BIND_NOW\)|FLAGS.*\bNOW\b' || say "$file" "its addresses stay writable (no -z now)"
  segments=$(readelf -lW "$file")
  case $segments in *GNU_RELRO*) ;; *) say "$file" "its tables stay writable (no -z relro)" ;; esac
  echo "$segments" | grep 'GNU_STACK' | grep -q 'E' && say "$file" "its stack may hold code"
  case $(readelf -hW "$file") in *"EXEC (Executable"*) say "$file" "it is not position independent" ;; esac
  case $(basename "$file") in
    rankscope | librankscope_base.so | librankscope.so)
      [ "${RANKSCOPE_CHECK:-all}" = linked ] && return 0
      symbols=$(readelf -sW --dyn-syms "$file")
      case $symbols in *__stack_chk_fail*) ;; *) say "$file" "compiled without -fstack-protector-strong" ;; esac
      echo "$symbols" | grep -Eq ' __[a-z_]+_chk(@|$)' || say "$file" "compiled without _FORTIFY_SOURCE" ;;
  esac
}

for folder in "$@"; do
  for file in "$folder"/*; do
    [ -f "$file" ] && [ ! -L "$file" ] && check "$file"
  done
done
if [ $checked -eq 0 ]; then
  echo "there is no program and no library in: $*" >&2
  exit 1
fi
[ $failed -eq 0 ] && echo "$checked binaries are as they should be"
exit $failed
