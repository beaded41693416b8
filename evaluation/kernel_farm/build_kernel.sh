#!/bin/sh
# Build a user-mode-linux kernel with simulated time from Debian's source package, as the farm takes it.
#
#     evaluation/kernel_farm/build_kernel.sh [ROOT]
#
# It needs build-essential, flex, bison, bc and xz-utils, 2 GB in the current folder and five minutes of two processors.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/tfrctrace-farm/simulated-time}")
version=${LINUX_VERSION:-6.1}
work=$(mktemp -d "$PWD/linux-build.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get download "linux-source-$version" && dpkg -x linux-source-*.deb .)
tar -C "$work" -xf "$work/usr/src/linux-source-$version.tar.xz"
cd "$work/linux-source-$version"
make ARCH=um KCONFIG_ALLCONFIG="$here/kernel.config" allnoconfig
make ARCH=um -j"$(nproc)" linux
mkdir -p "$root/usr/bin"
cp linux "$root/usr/bin/linux.uml"
