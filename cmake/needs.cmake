# Looks for the needs of all slices, and decides which slices are built. src/loops looks for the library of
# each event loop itself.
include(CheckIncludeFile)
find_package(PkgConfig QUIET)
set(pkgconfig PKG_CONFIG_FOUND pkg-config "Debian: pkg-config")
set_property(GLOBAL PROPERTY tickwheel_built "the wheel")
find_path(TICKWHEEL_SODIUM_INCLUDE sodium.h)
set(sodium TICKWHEEL_SODIUM_INCLUDE libsodium "Debian: libsodium-dev")
tickwheel_needs(SCHED ${sodium})

if(TICKWHEEL_STORE AND PKG_CONFIG_FOUND)
    pkg_check_modules(TICKWHEEL_SQLITE QUIET sqlite3>=3.38)
endif()
tickwheel_needs(STORE TICKWHEEL_BUILDS_SCHED "the scheduler" TICKWHEEL_SCHED ${pkgconfig}
    TICKWHEEL_SQLITE_FOUND "sqlite3 3.38 or later" "Debian: libsqlite3-dev")

check_include_file(sys/epoll.h TICKWHEEL_HAS_EPOLL)
if(TICKWHEEL_LOOPS STREQUAL "AUTO") # epoll alone is enough
    tickwheel_needs(LOOPS TICKWHEEL_HAS_EPOLL sys/epoll.h Linux)
else()
    tickwheel_needs(LOOPS TICKWHEEL_HAS_EPOLL sys/epoll.h Linux ${pkgconfig})
endif()

# Only a header of libbsd is needed: its tree, for the model.
if(TICKWHEEL_COMMAND OR TICKWHEEL_TESTS OR TICKWHEEL_FUZZ)
    find_path(BSD_TREE_INCLUDE bsd/sys/tree.h)
endif()
set(bsd BSD_TREE_INCLUDE libbsd "Debian: libbsd-dev")

if(TICKWHEEL_COMMAND)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(ZSTD QUIET IMPORTED_TARGET libzstd)
        pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)
        pkg_check_modules(HIREDIS QUIET IMPORTED_TARGET hiredis)
        pkg_check_modules(OPENSSL QUIET IMPORTED_TARGET openssl>=1.1.1)
        pkg_check_modules(NCURSES QUIET IMPORTED_TARGET ncursesw)
    endif()
endif()
tickwheel_needs(COMMAND TICKWHEEL_BUILDS_SCHED "the scheduler" TICKWHEEL_SCHED ${pkgconfig} ${bsd}
    ZSTD_FOUND libzstd "Debian: libzstd-dev"
    JANSSON_FOUND jansson "Debian: libjansson-dev"
    HIREDIS_FOUND hiredis "Debian: libhiredis-dev" OPENSSL_FOUND "openssl 1.1.1 or later" "Debian: libssl-dev"
    NCURSES_FOUND ncurses "Debian: libncurses-dev")

# The header of the server's module API is not part of this repository.
if(TICKWHEEL_REDIS)
    unset(REDISMODULE_INCLUDE CACHE)
    find_path(REDISMODULE_INCLUDE redismodule.h
        HINTS ${REDISMODULE_DIR} ${PROJECT_SOURCE_DIR}/build/redismodule)
endif()
tickwheel_needs(REDIS ${sodium} REDISMODULE_INCLUDE redismodule.h
    "tools/redismodule build/redismodule fetches it, or name its folder with -DREDISMODULE_DIR=FOLDER")

if(TICKWHEEL_TESTS)
    # Debian's own python3 has the modules that tests use
    find_program(TICKWHEEL_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
    find_program(TICKWHEEL_PYTHON python3)
    if(PKG_CONFIG_FOUND)
        pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
    endif()
endif()
tickwheel_needs(TESTS ${pkgconfig} ${bsd} CMOCKA_FOUND cmocka "Debian: libcmocka-dev"
    TICKWHEEL_PYTHON python3 "Debian: python3")
