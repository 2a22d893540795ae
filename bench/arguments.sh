# SPDX-License-Identifier: MIT
# The `run` of each part sources this file. It parses PROGRAM DIR [--quick] [--keep NAME].
# Before: part is the name of the folder, program the name of PROGRAM in the usage (or empty).
# After: bench, dir, quick (0 or 1), keep (a name or empty) and here are set.
usage() {
    program=${program:-$(echo "${part}_bench" | tr a-z A-Z)}
    echo "usage: bench/$part/run $program DIR [--quick] [--keep NAME]" >&2
    exit 2
}
[ $# -ge 2 ] || usage
bench=$1 dir=$2 quick=0 keep=
shift 2
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=1 ;;
    --keep) [ $# -ge 2 ] || usage; keep=$2; shift ;;
    *) echo "bench/$part/run: unknown option '$1'" >&2; usage ;;
    esac
    shift
done
case $keep in */* | .*) echo "bench/$part/run: --keep: expected a plain name, not '$keep'" >&2; exit 2 ;; esac
[ -x "$bench" ] || { echo "bench/$part/run: $bench: no such program" >&2; exit 2; }
here=$(dirname "$0")

# keep_files FILE... copies these files to a folder under results/ if --keep was given.
keep_files() {
    [ -n "$keep" ] || return 0
    kept=$here/../results/$(date -u +%Y-%m-%d)-$keep
    mkdir -p "$kept"
    cp "$@" "$kept"
    echo "Kept in $kept."
}
