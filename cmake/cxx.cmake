# C++. Only the tests, the benchmark and the example of tickwheel.hpp need it; without a C++ compiler they are
# left out. For clang we take clang++, because the sanitizers of different compilers do not work together.
include(CheckLanguage)
if(CMAKE_C_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_CXX_COMPILER)
    string(REGEX REPLACE "clang([^/]*)$" "clang++\\1" CMAKE_CXX_COMPILER "${CMAKE_C_COMPILER}")
endif()
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
    message(STATUS
        "No C++ compiler: tests and benchmark of tickwheel.hpp are left out (tools/setup test installs one)")
    return()
endif()
enable_language(CXX)
set(CMAKE_CXX_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
set(CMAKE_CXX_EXTENSIONS OFF)

# The same options as for C, without the options that only C has.
add_library(tickwheel_options_cpp INTERFACE)
get_target_property(options tickwheel_options INTERFACE_COMPILE_OPTIONS)
list(FILTER options EXCLUDE REGEX "-W(strict|missing)-prototypes")
target_compile_options(tickwheel_options_cpp INTERFACE ${options} -Wconversion)
target_compile_definitions(tickwheel_options_cpp INTERFACE TW_DEBUG=${TICKWHEEL_DEBUG})
target_link_options(tickwheel_options_cpp INTERFACE $<TARGET_PROPERTY:tickwheel_options,INTERFACE_LINK_OPTIONS>)
target_compile_features(tickwheel_options_cpp INTERFACE cxx_std_17)
