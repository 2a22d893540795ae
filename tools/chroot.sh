# SPDX-License-Identifier: MIT
# A minimal Debian 12 in a scratch folder, for scripts that prove something in it; they read this with `.`,
# after having set `command`, the name that they have for people. It gives them
#   root       the folder; removed in the end with all that is in it and files named $root.*, whatever
#              happens, unless KEEP=1
#   say, step  what goes on, and a step of it: its output in a log, the end of which is shown when the step
#              fails
#   inside     runs a command there
# Needs root, for debootstrap and chroot. Debian comes from the mirror that this machine's apt uses
# (tools/mirror), or from MIRROR= in the environment.

if [ "$(id -u)" -ne 0 ]; then
    echo "$command: needs root, to make a Debian in a folder and to go into it: sudo $command" >&2
    exit 1
fi
tools/setup fresh

suite=bookworm
mirror=$(tools/mirror)
root=$(mktemp -d "${TMPDIR:-/var/tmp}/tickwheel-fresh.XXXXXX")
chmod 755 "$root" # it becomes /, which not only root may enter
cache=${TMPDIR:-/var/tmp}/tickwheel-fresh-cache
log=$root.log

clean_up() {
    status=$?
    trap - EXIT INT TERM
    for mounted in dev proc; do umount -l "$root/$mounted" 2>/dev/null || true; done
    if [ "${KEEP:-}" ]; then
        echo "kept: $root"
    else
        rm -rf --one-file-system "$root" "$root".*
    fi
    exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say() {
    printf '%s  %s\n' "$(date +%T)" "$*"
}

# The end of a log: the output of the tests that failed, if there were tests (tools/run-tests), and else some
# lines.
end_of() {
    grep -q '^==== ' "$1" && sed -n '/^==== /,$p' "$1" || tail -n 60 "$1"
}

step() {
    name=$1
    shift
    say "$name ..."
    start=$(date +%s)
    if ! "$@" >"$log" 2>&1; then
        end_of "$log" >&2
        say "FAIL: $name"
        exit 1
    fi
    say "$name: ok, $(($(date +%s) - start)) s"
}

inside() {
    chroot "$root" /usr/bin/env -i \
        HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
        ${https_proxy:+https_proxy="$https_proxy"} "$@"
}

make_debian() {
    mkdir -p "$cache"
    debootstrap --variant=minbase --cache-dir="$cache" "$suite" "$root" "$mirror"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --make-rslave "$root/dev"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # The host's way to its mirror (a proxy, a certificate) is not part of what is proven.
    for setting in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
        [ -f "$setting" ] && cp "$setting" "$root/etc/apt/apt.conf.d/90host" || true
    done
    printf 'deb %s %s main\ndeb %s %s-updates main\n' "$mirror" "$suite" "$mirror" "$suite" \
        >"$root/etc/apt/sources.list"
}
