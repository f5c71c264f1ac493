# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# debian.sh - sourced by scripts/test after packages.sh: another release of Debian in a folder, in which
# to build and test.
#
# A command in the release runs in its own mount and process namespaces: the kernel removes its mounts and
# processes when the command ends, in any way, and they are invisible outside. Therefore the folder can be
# removed at any time.

# make_debian FOLDER SUITE PACKAGE...: makes the release SUITE in FOLDER/root, unless it is complete, and
# installs the packages in it that are missing. On failure debian_reason says why.
make_debian() {
    into=$(mkdir -p "$1" && cd "$1" && pwd) suite=$2
    shift 2
    debian_reason=""
    if [ "$(id -u)" != 0 ]; then
        debian_reason="debootstrap and chroot need root"
    elif ! unshare --mount --pid --fork true 2>/dev/null; then
        debian_reason="unshare cannot make namespaces here"
    elif [ ! -e "$into/complete" ] && ! command -v debootstrap >/dev/null; then
        debian_reason="there is no debootstrap"
    elif [ ! -e "$into/complete" ] && [ -z "$(debian_mirror)" ]; then
        debian_reason="the sources of apt name no mirror of Debian"
    fi
    [ -z "$debian_reason" ] || return 1
    if [ ! -e "$into/complete" ]; then
        echo "quire: making Debian $suite in $into" >&2
        # mounts of a user stay as they are, and so does what lies in them
        rm -rf --one-file-system "$into/root"
        unshare --mount --pid --fork --kill-child \
            debootstrap --variant=minbase "$suite" "$into/root" "$(debian_mirror)" >"$into/log" 2>&1 &&
            touch "$into/complete"
    fi
    if [ ! -e "$into/complete" ]; then
        debian_reason="debootstrap cannot make Debian $suite; see $into/log"
        return 1
    fi
    in_debian "$into" sh -c '. scripts/packages.sh; install_packages "$@"' sh "$@"
}

# in_debian FOLDER COMMAND...: runs the command in the release in FOLDER, in the current folder, which has
# the same path there. Of the environment it gets CC, CXX and what the tests and apt read.
in_debian() {
    root=$(cd "$1/root" && pwd)
    shift
    unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" sh -c '
        root=$1 tree=$2 data=$3
        shift 3
        # /dev/shm and /tmp of its own: what tests name by their process has the same names outside
        mount --rbind /dev "$root/dev" && mount --rbind /sys "$root/sys" &&
            mount -t tmpfs tmpfs "$root/dev/shm" && mount -t tmpfs tmpfs "$root/tmp" &&
            mkdir -p "$root$tree" && mount --bind "$tree" "$root$tree" || exit 1
        if [ -d "$data" ]; then
            mkdir -p "$root$data" && mount --bind -o ro "$data" "$root$data" || exit 1
        fi
        # this shell stays: as the first process it takes what orphans leave
        chroot "$root" sh -c '\''cd "$0" && exec "$@"'\'' "$tree" "$@"
        exit $?' sh "$root" "$PWD" "${QUIRE_TEST_DATA:-}" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
        CC="${CC:-cc}" CXX="${CXX:-c++}" ${QUIRE_TEST_DATA:+QUIRE_TEST_DATA="$QUIRE_TEST_DATA"} \
        ${QUIRE_NPM:+QUIRE_NPM="$QUIRE_NPM"} ${QUIRE_SOURCES:+QUIRE_SOURCES="$QUIRE_SOURCES"} \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        ${no_proxy:+no_proxy="$no_proxy"} "$@"
}
