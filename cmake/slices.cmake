# The slices of the build. The wheel is not a slice: it is always built and needs no other library.

# Makes the option TICKWHEEL_<SLICE>: ON, OFF or AUTO.
function(tickwheel_slice slice title default)
    set(TICKWHEEL_${slice} ${default} CACHE STRING
        "Build ${title}: ON, OFF, or AUTO (ON if all its needs are found)")
    set_property(CACHE TICKWHEEL_${slice} PROPERTY STRINGS AUTO ON OFF)
    set_property(GLOBAL PROPERTY tickwheel_title_${slice} "${title}")
    string(TOUPPER "${TICKWHEEL_${slice}}" value)
    if(NOT value MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$" OR "${TICKWHEEL_${slice}}" STREQUAL "auto")
        message(FATAL_ERROR "TICKWHEEL_${slice} is '${TICKWHEEL_${slice}}': expected ON, OFF or AUTO")
    endif()
endfunction()

#   tickwheel_needs(SLICE [FOUND "name" "where from"]...)
#
# decides whether the slice is built, and sets TICKWHEEL_BUILDS_<SLICE>. Each need is three words: a variable
# that is true if the need is met, its name for people, and where it comes from. With AUTO the slice is built
# if all its needs are met. With ON the configuration stops if a need is not met, and names it.
function(tickwheel_needs slice)
    set(missing)
    set(needs ${ARGN})
    while(needs)
        list(POP_FRONT needs found name from)
        if(NOT ${found})
            list(APPEND missing "${name} (${from})")
        endif()
    endwhile()
    list(JOIN missing ", " missing)
    get_property(title GLOBAL PROPERTY tickwheel_title_${slice})
    set(builds OFF)
    if(NOT TICKWHEEL_${slice})
        tickwheel_left_out("${title}: TICKWHEEL_${slice} is ${TICKWHEEL_${slice}}")
    elseif(NOT missing)
        set(builds ON)
        set_property(GLOBAL APPEND PROPERTY tickwheel_built "${title}")
    elseif(TICKWHEEL_${slice} STREQUAL "AUTO")
        tickwheel_left_out("${title}: missing ${missing}")
    else()
        message(FATAL_ERROR "TICKWHEEL_${slice} is ${TICKWHEEL_${slice}}, but ${title} cannot be built. "
            "Missing: ${missing}.")
    endif()
    set(TICKWHEEL_BUILDS_${slice} ${builds} PARENT_SCOPE)
endfunction()

# Notes a part that is left out, and the reason, for the summary.
function(tickwheel_left_out text)
    set_property(GLOBAL APPEND PROPERTY tickwheel_left_out "${text}")
endfunction()

# Prints the slices that are built, and each slice that is left out, with the reason.
function(tickwheel_summary)
    get_property(built GLOBAL PROPERTY tickwheel_built)
    get_property(left_out GLOBAL PROPERTY tickwheel_left_out)
    list(JOIN built ", " built)
    message(STATUS "Tickwheel ${PROJECT_VERSION}: ${built}")
    foreach(text ${left_out})
        message(STATUS "  without ${text}")
    endforeach()
endfunction()
