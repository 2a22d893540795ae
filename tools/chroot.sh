# SPDX-License-Identifier: MIT
# A minimal Debian 12 in a scratch folder, for scripts that test in a new system. They read this file with
# `.`, after they have set `command`, the name of the make target for messages, and perhaps `size_mb`, if the
# folder stays smaller than that. Then it is in memory, where memory is available. It defines
#   root       the folder; at the end it is removed in any case, together with the files $root.*, unless KEEP=1
#   say        prints a line with the time
#   step       runs a command as a step; its output goes to a log, whose end is shown if the step fails
#   inside     runs a command in the folder's Debian
# Needs root, for mmdebstrap and chroot. Debian is fetched from the mirror that this machine's apt uses
# (tools/mirror), or from MIRROR= in the environment.

if [ "$(id -u)" -ne 0 ]; then
    echo "$command: needs root, for mmdebstrap and chroot; use: sudo $command" >&2
    exit 1
fi
tools/setup fresh

suite=bookworm
mirror=$(tools/mirror)
root=$(mktemp -d "${TMPDIR:-/var/tmp}/tickwheel-fresh.XXXXXX")
chmod 755 "$root" # it becomes /, which all users may enter
log=$root.log

clean_up() {
    status=$?
    trap - EXIT HUP INT TERM
    [ "${BASHPID:-$$}" = $$ ] || exit $status # a signal has come before the job behind has let go of the trap
    [ -z "${maker:-}" ] || { kill -- "-$maker" && wait "$maker"; } 2>/dev/null || true # make_debian
    for mounted in dev proc; do umount -l "$root/$mounted" 2>/dev/null || true; done
    if [ "${KEEP:-}" ]; then
        echo "kept: $root (if it is in memory, remove it by: umount $root)"
    else
        umount -l "$root" 2>/dev/null || true # if it is in memory
        rm -rf --one-file-system "$root" "$root".*
    fi
    exit $status
}
trap clean_up EXIT
trap 'exit 130' HUP INT TERM

say() {
    printf '%s  %s\n' "$(date +%T)" "$*"
}

# Prints the end of a log: if tests failed, their output (tools/run-tests), otherwise the last 60 lines.
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

# The folder is new and is removed at the end, so dpkg need not wait until its files are on the disk. dpkg waits
# all the same when it writes its own lists, unless the folder is in memory. The lists of packages stay, so
# apt-get in the folder needs no update.    make_debian [OPTION of mmdebstrap...]
make_debian() {
    available_mb=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
    if [ "${size_mb:-}" ] && [ $((size_mb * 2)) -lt "$available_mb" ]; then
        mount -t tmpfs -o "mode=755,size=${size_mb}m" tickwheel "$root" || return
    fi
    # The host's settings for its mirror (a proxy, a certificate) are copied; they are not part of the test.
    settings=
    for setting in tools/apt.conf /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do
        [ ! -f "$setting" ] || settings="$settings --aptopt=$setting"
    done
    mmdebstrap --variant=minbase --skip=cleanup/apt/lists --dpkgopt=force-unsafe-io $settings "$@" \
        "$suite" "$root" "deb $mirror $suite main" "deb $mirror $suite-updates main" || return
    mount -t proc proc "$root/proc" &&
        mount --rbind /dev "$root/dev" &&
        mount --make-rslave "$root/dev" &&
        cp /etc/resolv.conf "$root/etc/resolv.conf"
}
