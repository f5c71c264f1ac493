# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# packages.sh - sourced by the scripts: installs Debian packages that are missing.
#
# As root or through sudo. A package that is unavailable is reported; the build decides whether it is
# necessary.

install_packages() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    if ! command -v apt-get >/dev/null; then
        echo "quire: not a Debian system; install by hand:$missing" >&2
        return 0
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root=""
    elif command -v sudo >/dev/null; then
        as_root="sudo"
    else
        echo "quire: not root and no sudo; install by hand:$missing" >&2
        return 0
    fi
    echo "quire: installing$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    $as_root apt-get -qq update >&2 || true
    # one by one only if the whole list is refused: one missing package must not cost the others
    $as_root apt-get -qq install -y --no-install-recommends $missing >/dev/null 2>&1 ||
        for package in $missing; do
            $as_root apt-get -qq install -y --no-install-recommends "$package" >/dev/null 2>&1 ||
                echo "quire: $package cannot be installed" >&2
        done
}

# The mirror of Debian that the machine's own sources name first, or nothing.
debian_mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE '^(deb .*|URIs: *)https?://[^ ]*/debian/?( |$)' | grep -oE 'https?://[^ ]*' | head -1
}

# apt_options deb|deb-src - options for apt-get that read $suite of $mirror alone, with lists in $into
apt_options() {
    mkdir -p "$into/lists/partial" "$into/archives/partial"
    echo "$1 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
        >"$into/sources.list"
    echo "-qq -o Dir::Etc::sourcelist=$into/sources.list -o Dir::Etc::sourceparts=/nonexistent
        -o Dir::State::lists=$into/lists -o Dir::Cache=$into -o Acquire::Languages=none
        -o APT::Sandbox::User= -o Debug::NoLocking=1"
}

# unpack_packages FOLDER SUITE PACKAGE... - unpacks packages of a suite of Debian (trixie,
# bookworm-backports) into FOLDER/root, without their dependencies and without installing anything. Uses
# the mirror and the key of the machine's own sources.
unpack_packages() {
    into=$(mkdir -p "$1" && cd "$1" && pwd) suite=$2
    shift 2
    [ -e "$into/complete" ] && return 0
    mirror=$(debian_mirror)
    if ! command -v apt-get >/dev/null || [ -z "$mirror" ]; then
        echo "quire: $* of $suite are unavailable here" >&2
        return 1
    fi
    mkdir -p "$into/root"
    options=$(apt_options deb)
    (
        cd "$into" && apt-get $options update && apt-get $options download "$@" &&
            for package in *.deb; do dpkg -x "$package" root || exit 1; done && touch complete
    ) >"$into/log" 2>&1
    rm -rf "$into"/*.deb "$into"/*.bin "$into/lists" "$into/archives"
    [ -e "$into/complete" ] && return 0
    echo "quire: $* of $suite are unavailable; see $into/log" >&2
    return 1
}

# download_source FOLDER SUITE PACKAGE - downloads the source archives of a package of Debian into FOLDER.
download_source() {
    into=$(mkdir -p "$1" && cd "$1" && pwd) suite=$2 package=$3
    [ -e "$into/$package.complete" ] && return 0
    mirror=$(debian_mirror)
    if ! command -v apt-get >/dev/null || [ -z "$mirror" ]; then
        echo "quire: the source of $package is unavailable here" >&2
        return 1
    fi
    options=$(apt_options deb-src)
    (
        cd "$into" && apt-get $options update && apt-get $options source --download-only "$package" &&
            touch "$package.complete"
    ) >"$into/$package.log" 2>&1
    rm -rf "$into"/*.bin "$into/lists" "$into/archives"
    [ -e "$into/$package.complete" ] && return 0
    echo "quire: the source of $package is unavailable; see $into/$package.log" >&2
    return 1
}

# npm_packages FOLDER PACKAGE@VERSION... - installs packages of npm into FOLDER/node_modules, without their
# optional dependencies and without running their scripts. Uses the machine's npm and its settings.
npm_packages() {
    into=$(mkdir -p "$1" && cd "$1" && pwd)
    shift
    if ! command -v npm >/dev/null; then
        echo "quire: $* of npm are unavailable: there is no npm" >&2
        return 1
    fi
    for package in "$@"; do
        complete=$into/$(echo "$package" | tr / _).complete
        [ -e "$complete" ] && continue
        npm install --prefix "$into" --ignore-scripts --omit=optional --no-audit --no-fund "$package" \
            >"$into/log" 2>&1 && touch "$complete" ||
            echo "quire: $package of npm is unavailable; see $into/log" >&2
    done
}

# The suite of this machine's release, such as bookworm.
release=$(. /etc/os-release 2>/dev/null && echo "$VERSION_CODENAME") || release=unknown

# For what this release lacks.
later_release=trixie

# unpack_program FOLDER PROGRAM PACKAGE... - a program of the later release, whose libraries are among
# the packages, as FOLDER/bin/PROGRAM.
unpack_program() {
    into=$(mkdir -p "$1" && cd "$1" && pwd) program=$2
    shift 2
    [ -x "$into/bin/$program" ] && return 0
    if [ "$(uname -m)" != x86_64 ]; then
        echo "quire: $program is unavailable here" >&2
        return 1
    fi
    unpack_packages "$into" $later_release "$@" || return 1
    mkdir -p "$into/bin"
    # the program and its libraries come from one release, so that they work with any installed packages
    cat >"$into/bin/$program" <<EOF
#!/bin/sh
exec $into/root/usr/lib64/ld-linux-x86-64.so.2 \\
    --library-path $into/root/usr/lib/x86_64-linux-gnu:$into/root/usr/lib \\
    $into/root/usr/bin/$program "\$@"
EOF
    chmod +x "$into/bin/$program"
    "$into/bin/$program" --version >>"$into/log" 2>&1 && return 0
    rm "$into/bin/$program"
    echo "quire: $program does not run; see $into/log" >&2
    return 1
}
