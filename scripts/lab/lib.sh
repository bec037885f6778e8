# What the parts of the lab share. To be sourced by bash from the top of the repository.

bin=$(realpath "$(scripts/build --path)")
work=$PWD/.build/lab
failures=0
# More options of systemd-nspawn.
nspawn_options=()

die() {
    echo "lab: $*" >&2
    exit 1
}

# need WHAT COMMAND…: a missing ability is a failure with a name, and nothing is tried without it.
need() {
    local what=$1
    shift
    PATH=$PATH:/usr/sbin:/sbin "$@" >/dev/null 2>&1 || die "this machine lacks $what"
}

# ok WHAT COMMAND…
ok() {
    local what=$1 verdict=ok began=$SECONDS
    shift
    "$@" || verdict=FAIL failures=$((failures + 1))
    printf '%-5s %s (%s s)\n' $verdict "$what" $((SECONDS - began))
}

# packages REVISION…: builds the package in these revisions, once for each binary, and sets debs.
packages() {
    local revision version host
    host=$(. /etc/os-release && echo "${ID/debian/deb}${VERSION_ID:-}")
    version=$("$bin/waypost" --version)
    debs=()
    for revision; do
        local deb=build/waypost_$version-$revision+${host}_$(dpkg --print-architecture).deb
        if [ ! "$deb" -nt "$bin/waypost" ] || [ -n "$(find packaging systemd udev Makefile docs/waypost.8 -newer "$deb" -print -quit)" ]; then
            REVISION=$revision packaging/build || die "no package"
        fi
        debs+=("$deb")
    done
}

# nspawn JOB [FILE…]: boots a fresh copy of the root with systemd as its first process, with JOB and FILEs in /lab, the
# scripts in /scripts and a network of its own. The root is of this host's suite, or of $suite. Passes on what the job prints and how
# it ends.
nspawn() {
    local job=$1 share status
    shift
    scripts/lab/nspawn/root "$work" "${debs[0]}" ${suite:+"$suite"} || die "no root file system"
    share=$(mktemp -d)
    cp "scripts/lab/nspawn/jobs/$job.sh" "$share/job.sh"
    (($# == 0)) || cp "$@" "$share/"
    scripts/lab/nspawn/boot "$work" "$share" --bind-ro="$PWD/scripts:/scripts" --bind-ro="$PWD/fixtures:/fixtures" \
        --private-network "${nspawn_options[@]}"
    status=$?
    rm -rf "$share"
    return $status
}
