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
