#!/usr/bin/env bash
# scripts/test-deb.sh FILE.deb: installs the package in a bare Debian 12 (debootstrap, a temporary folder) and scans the
# built-in model there. Needs root, debootstrap and a network; minutes, so it is no part of `make test`.
set -euo pipefail
package=$(realpath "${1:?usage: test-deb.sh FILE.deb}")
command -v debootstrap >/dev/null || { echo "test-deb: debootstrap is missing (apt-get install debootstrap)" >&2; exit 1; }
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 1; }
rm -f "$root.log"
mount -t proc proc "$root/proc"  # LibTorch asks it for the processor
cp "$package" "$root/package.deb"
[ ! -e /etc/apt/apt.conf.d ] || cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"  # a proxy, if there is one
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }
inside apt-get update -q >/dev/null
inside apt-get install -q -y --no-install-recommends /package.deb >/dev/null
inside rankscope --version
inside rankscope scan --off skip --samples 8 --threads 1 --quiet | tail -n 20
inside apt-get remove -q -y rankscope >/dev/null
! inside sh -c 'command -v rankscope'
echo "test-deb: installed, scanned and removed in a bare root"
