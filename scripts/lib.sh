# Sourced by the scripts beside it. POSIX sh.

say() { printf '== %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Whether packages can be installed here.
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed'; }

# apt_install PACKAGE...: install what is missing; of a|b, the first that there is.
# A package that the release lacks is an error.
apt_install() {
    missing=
    for choice in "$@"; do
        found=
        for package in $(printf '%s' "$choice" | tr '|' ' '); do
            if installed "$package"; then found=1; fi
        done
        [ -n "$found" ] || missing="$missing $choice"
    done
    [ -n "$missing" ] || return 0
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null
    wanted=
    for choice in $missing; do
        found=
        for package in $(printf '%s' "$choice" | tr '|' ' '); do
            if [ -z "$found" ] && apt-cache show "$package" >/dev/null 2>&1; then
                found=$package
            fi
        done
        [ -n "$found" ] || fail "this system has no package $choice"
        wanted="$wanted $found"
    done
    say "installing$wanted"
    # shellcheck disable=SC2086
    apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends $wanted >/dev/null
}

# The Python to make environments with: $HIPPORT_PYTHON, else the first that is new enough.
find_python() {
    for candidate in ${HIPPORT_PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    fail "needs Python 3.10 or newer; set HIPPORT_PYTHON to one"
}

# make_venv FOLDER: a virtual environment, if there is none yet that works.
make_venv() {
    if [ -x "$1/bin/python" ] && "$1/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    python=$(find_python)
    rm -rf "$1"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        can_apt || fail "$python lacks the venv module; on Debian: apt-get install python3-venv"
        apt_install python3-venv
    fi
    "$python" -m venv "$1"
}
