# SPDX-License-Identifier: MIT
# apt-get for our scripts. They read this file with `.`, after they have set `tools`, the folder of this file,
# and perhaps `sudo`.

# apt-get that asks a failing mirror again, and gives up a silent one (apt.conf).
apt_get() {
    ${sudo:-} env LC_ALL=C DEBIAN_FRONTEND=noninteractive ${apt_limit:-} apt-get -c "$tools/apt.conf" "$@"
}

# Prints the hosts, as http://HOST, that failed in a log of `apt-get update` and never answered.
silent_hosts() {
    sed -n 's#^\(Ign\|Err\):[0-9]* \([a-z+]*://[^/ ]*\).*#\2#p' "$1" | sort -u | while read -r host; do
        grep -q "^\(Hit\|Get\):[0-9]* $host[/ ]" "$1" || echo "$host"
    done
}

# Fetches the lists of packages, and writes the output of apt-get to LOG. Fails with 4 if no mirror answers
# within $reach_s seconds (110), also if apt-get waits that long for one of several hosts; otherwise as apt-get
# does, which calls it a success if no mirror answers. Mirrors that are merely slow have ten minutes more.
#    update_lists LOG [OPTION...]
update_lists() {
    lists_log=$1
    shift
    lists_status=0
    apt_limit="timeout --foreground -k 5 ${reach_s:-110}"
    apt_get "$@" -o quiet=1 update >"$lists_log" 2>&1 || lists_status=$?
    case $lists_status in
    0) grep -q '^\(Hit\|Get\):' "$lists_log" || ! grep -q '^Err:' "$lists_log" || lists_status=4 ;;
    124 | 137)
        if ! grep -q '^\(Hit\|Get\):' "$lists_log" || [ "$(silent_hosts "$lists_log")" ]; then
            lists_status=4
        else
            lists_status=0
            apt_limit="timeout --foreground -k 5 600"
            apt_get "$@" -o quiet=1 update >>"$lists_log" 2>&1 || lists_status=$?
        fi
        ;;
    esac
    apt_limit=
    return $lists_status
}
