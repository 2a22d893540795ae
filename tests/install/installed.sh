# SPDX-License-Identifier: MIT
# For the tests that use an installed Tickwheel, as `. installed.sh`: installs the tree that was built in $build
# into $prefix, in a scratch folder, and says what is there. $scratch/record is the record of make install.
# Requires: build, source
here=$source/tests/install
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
prefix=$scratch/prefix

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Runs a command, and shows its output when it fails.
quietly() {
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "failed: $*"; }
}

# The version comes from the installed pkg-config file; each program prints the version of its header.
expect_version() {
    found=$(LD_LIBRARY_PATH=$2 "$1") || fail "$1 failed"
    [ "$found" = "$version" ] || fail "$1 says '$found': expected '$version'"
}

# CMake writes its record into the build folder, where the next one replaces it.
quietly flock "$build" sh -c 'cmake --install "$1" --prefix "$2" && cp "$1/install_manifest.txt" "$3"' \
    "$0" "$build" "$prefix" "$scratch/record"
pc=$(dirname "$(find "$prefix" -name tickwheel.pc)")
lib=$(dirname "$(find "$prefix" -name libtickwheel.so)")
# pkg-config knows the prefix of the configured build, so the test passes its own prefix.
ask() { PKG_CONFIG_PATH=$pc pkg-config --define-variable=prefix="$prefix" "$@"; }
version=$(ask --modversion tickwheel)
cxx=$(command -v c++) || echo "skipped: no C++ compiler"

rooms="wheel sched"
[ ! -e "$lib/libtickwheel_store.so" ] || rooms="$rooms store"
for room in $rooms; do
    cp "$here/use_$room.c" "$scratch/use_$room.cc"
done

# The library of each event loop that was built.
loops=
for file in "$lib"/libtickwheel_*.so; do
    loop=${file##*/libtickwheel_}
    loop=${loop%.so}
    [ -f "$prefix/include/tickwheel/loop_$loop.h" ] || continue
    loops="$loops $loop"
    printf '#include <tickwheel/loop_%s.h>\nint main(void) { return tw_loop_%s_new == 0; }\n' $loop $loop \
        >"$scratch/loop_$loop.c"
done
[ "$loops" ] || fail "no library of an event loop is installed"
