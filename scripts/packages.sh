# packages.sh - sourced by the scripts: installs Debian packages that are missing.
#
# As root or through sudo. A package that cannot be had is told; whether that matters is for the build
# to say.

install_packages() {
    missing=""
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
            missing="$missing $package"
    done
    [ -z "$missing" ] && return 0
    if ! command -v apt-get >/dev/null; then
        echo "quire: this is no Debian system; install by hand:$missing" >&2
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

# unpack_newer FOLDER PROGRAM PACKAGE... - for a program that this release of Debian does not have:
# unpacks the packages of the next release, with their libraries, into FOLDER, without installing
# anything, and makes FOLDER/bin/PROGRAM. Takes the mirror and the key from the machine's own sources.
unpack_newer() {
    into=$(mkdir -p "$1" && cd "$1" && pwd) program=$2
    shift 2
    [ -x "$into/bin/$program" ] && return 0
    if ! command -v apt-get >/dev/null || [ "$(dpkg --print-architecture)" != amd64 ]; then
        echo "quire: $program cannot be had here" >&2
        return 1
    fi
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE '^(deb .*|URIs: *)https?://[^ ]*/debian/?( |$)' | grep -oE 'https?://[^ ]*' | head -1)
    mkdir -p "$into/lists/partial" "$into/archives/partial" "$into/bin" "$into/root"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
        >"$into/sources.list"
    options="-qq -o Dir::Etc::sourcelist=$into/sources.list -o Dir::Etc::sourceparts=/nonexistent
        -o Dir::State::lists=$into/lists -o Dir::Cache=$into -o Acquire::Languages=none
        -o APT::Sandbox::User= -o Debug::NoLocking=1"
    (
        cd "$into" && apt-get $options update && apt-get $options download "$@" &&
            for package in *.deb; do dpkg -x "$package" root; done
    ) >"$into/log" 2>&1
    # the program and its libraries come from one release, so that they fit whatever is installed
    cat >"$into/bin/$program" <<EOF
#!/bin/sh
exec $into/root/usr/lib64/ld-linux-x86-64.so.2 \\
    --library-path $into/root/usr/lib/x86_64-linux-gnu:$into/root/usr/lib \\
    $into/root/usr/bin/$program "\$@"
EOF
    chmod +x "$into/bin/$program"
    rm -rf "$into"/*.deb "$into/lists" "$into/archives"
    "$into/bin/$program" --version >>"$into/log" 2>&1 && return 0
    rm "$into/bin/$program"
    echo "quire: $program cannot be had; see $into/log" >&2
    return 1
}

# unpack_backports FOLDER PACKAGE... - packages of this release's backports, without their libraries and
# without installing anything, into FOLDER/root.
unpack_backports() {
    into=$(mkdir -p "$1" && cd "$1" && pwd)
    shift
    [ -e "$into/complete" ] && return 0
    release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        grep -oE '^(deb .*|URIs: *)https?://[^ ]*/debian/?( |$)' | grep -oE 'https?://[^ ]*' | head -1)
    if ! command -v apt-get >/dev/null || [ -z "$release" ] || [ -z "$mirror" ]; then
        echo "quire: backports of $* cannot be had here" >&2
        return 1
    fi
    mkdir -p "$into/lists/partial" "$into/archives/partial" "$into/root"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release-backports main" \
        >"$into/sources.list"
    options="-qq -o Dir::Etc::sourcelist=$into/sources.list -o Dir::Etc::sourceparts=/nonexistent
        -o Dir::State::lists=$into/lists -o Dir::Cache=$into -o Acquire::Languages=none
        -o APT::Sandbox::User= -o Debug::NoLocking=1"
    (
        cd "$into" && apt-get $options update && apt-get $options download "$@" &&
            for package in *.deb; do dpkg -x "$package" root || exit 1; done && touch complete
    ) >"$into/log" 2>&1
    rm -rf "$into"/*.deb "$into/lists" "$into/archives"
    [ -e "$into/complete" ] && return 0
    echo "quire: backports of $* cannot be had; see $into/log" >&2
    return 1
}
