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

# ---- a state of its own: another release or architecture, without installing anything ----

keys=/usr/share/keyrings/debian-archive-keyring.gpg

# Prints the mirror of Debian that this machine's apt uses (tools/mirror), if its signatures can be checked.
#    signed_mirror SCRIPT       the name for messages
signed_mirror() {
    [ -r $keys ] || { echo "$1: $keys is missing: install debian-archive-keyring" >&2; return 1; }
    "$tools/mirror"
}

# Gives apt-get a state in the folder DIR, with one release of a mirror, and fetches its lists. If they cannot
# be fetched, ends the script with a message that begins with TEXT.
#    apt_apart TEXT DIR MIRROR RELEASE [ARCHITECTURE]
apt_apart() {
    mkdir -p "$2/lists/partial" "$2/archives/partial"
    echo "deb [signed-by=$keys${5:+ arch=$5}] $3 $4 main" >"$2/sources.list"
    : >"$2/status"
    cat >"$2/apt.conf" <<EOF
Dir::State "$2";
Dir::State::lists "$2/lists";
Dir::State::status "$2/status";
Dir::Cache "$2";
Dir::Etc::sourcelist "$2/sources.list";
Dir::Etc::sourceparts "-";
APT::Install-Recommends "0";
Acquire::Languages "none";
${5:+APT::Architecture "$5"; APT::Architectures "$5";}
EOF
    [ "$(id -u)" -ne 0 ] || echo 'APT::Sandbox::User "root";' >>"$2/apt.conf"
    export APT_CONFIG="$2/apt.conf"
    update_lists "$2/log" || {
        cat "$2/log" >&2
        echo "$1: $3 cannot be reached, or has no $4" >&2
        exit 1
    }
}
