#!/bin/sh
# Installs the unpacked gammachi below PREFIX; needs nothing but a POSIX shell, and no root.
set -eu

usage() {
    echo 'Usage: ./install.sh PREFIX'
    echo
    echo 'Copies bin, lib, include and share below PREFIX (DESTDIR is put before it). gammachi also works'
    echo 'where it was unpacked: put its bin into PATH.'
    echo
    echo 'Example: ./install.sh ~/.local'
}

check=false
[ "${1:-}" = --check ] && check=true && shift
case ${1:-} in
-h | --help) usage && exit 0 ;;
'' | -*) usage >&2 && exit 2 ;;
esac
[ $# = 1 ] || { usage >&2 && exit 2; }
case $1 in
/*) prefix=$1 ;;
*) prefix=$(pwd)/$1 ;;
esac
case $prefix in
*:* | *' '* | *'	'*)
    echo "$prefix: the dynamic linker cannot preload a library whose path holds a colon or a blank" >&2
    exit 2
    ;;
esac
# scripts/install asks before it builds.
$check && exit 0
cd "$(dirname "$0")"
into=${DESTDIR:-}$prefix
find bin lib include share -type f | while IFS= read -r file; do
    mkdir -p "$into/$(dirname "$file")"
    # Replaced by a new file, never written over: programs that run may have it mapped.
    cp "$file" "$into/$file.new"
    mv -f "$into/$file.new" "$into/$file"
done
echo "installed gammachi below $into"
case :$PATH: in
*":$prefix/bin:"*) ;;
*) echo "put it in your path: export PATH=$prefix/bin:\$PATH" ;;
esac
