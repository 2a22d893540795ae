# Makes and installs a library: an archive and a shared object, a pkg-config file, and targets in the CMake
# package.
#
#   tickwheel_library(NAME DESCRIPTION "..." SOURCES FILE... [OBJECTS TARGET]
#                     [NEEDS LIBRARY...]      other libraries of ours, e.g. tickwheel_sched
#                     [LINKS LIBRARY...]      foreign libraries, which users do not see
#                     [REQUIRES MODULE...]    the pkg-config names of foreign libraries, for static linking
#                     [VARIABLE NAME=VALUE])  one more variable of the pkg-config file
#
# It makes the targets NAME_static and NAME_shared. For other projects they have these names, where PART is
# NAME without tickwheel_:
#
#   tickwheel::PART_static    the static library
#   tickwheel::PART_shared    the shared library
#   tickwheel::PART           a short name of the shared library
#
# The library whose NAME is tickwheel has the names tickwheel::static, tickwheel::shared and
# tickwheel::tickwheel. The names are the same in the installed package (package.cmake.in) and in a project
# that adds this one with add_subdirectory().
if(TICKWHEEL_INSTALL)
    include(GNUInstallDirs)
endif()

function(tickwheel_library name)
    cmake_parse_arguments(is "" "DESCRIPTION;OBJECTS;VARIABLE" "SOURCES;NEEDS;LINKS;REQUIRES" ${ARGN})
    string(REGEX REPLACE "^tickwheel_?" "" part ${name})
    if(part)
        set(short ${part})
        string(APPEND part "_")
    else()
        set(short ${name})
    endif()
    set_property(GLOBAL APPEND PROPERTY TICKWHEEL_PARTS ${short})
    set(sources ${is_SOURCES})
    if(is_OBJECTS)
        list(APPEND sources $<TARGET_OBJECTS:${is_OBJECTS}>)
    endif()
    foreach(kind static shared)
        string(TOUPPER ${kind} KIND)
        set(library ${name}_${kind})
        add_library(${library} ${KIND} ${sources})
        set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${part}${kind}
            ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
        add_library(tickwheel::${part}${kind} ALIAS ${library})
        target_include_directories(${library} PUBLIC
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        list(TRANSFORM is_NEEDS APPEND _${kind} OUTPUT_VARIABLE needs)
        target_link_libraries(${library}
            PUBLIC ${needs} PRIVATE $<BUILD_INTERFACE:tickwheel_options> ${is_LINKS})
        if(TICKWHEEL_INSTALL)
            install(TARGETS ${library} EXPORT tickwheel)
        endif()
    endforeach()
    add_library(tickwheel::${short} ALIAS ${name}_shared)
    set(map ${CMAKE_CURRENT_SOURCE_DIR}/${name}.map)
    set_target_properties(${name}_shared PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
        LINK_DEPENDS ${map})
    if(is_NEEDS) # in a prefix of its own, a library finds our other libraries in its own folder
        set_target_properties(${name}_shared PROPERTIES INSTALL_RPATH $ORIGIN)
    endif()
    target_link_options(${name}_shared PRIVATE -Wl,--version-script=${map})
    if(NOT TICKWHEEL_INSTALL)
        return()
    endif()

    foreach(dir INCLUDEDIR LIBDIR) # below the prefix, unless the packager has given an absolute path
        set(PC_${dir} "${CMAKE_INSTALL_${dir}}")
        cmake_path(IS_RELATIVE PC_${dir} below)
        if(below)
            string(PREPEND PC_${dir} "\${prefix}/")
        endif()
    endforeach()
    set(PC_NAME ${name})
    set(PC_DESCRIPTION ${is_DESCRIPTION})
    set(PC_VARIABLE "")
    if(is_VARIABLE)
        set(PC_VARIABLE "${is_VARIABLE}\n")
    endif()
    list(JOIN is_NEEDS " " PC_REQUIRES)
    list(JOIN is_REQUIRES " " PC_REQUIRES_PRIVATE)
    set(links ${is_LINKS})
    list(FILTER links INCLUDE REGEX "^(m|ev)$") # libraries without a pkg-config file
    list(TRANSFORM links PREPEND -l)
    list(JOIN links " " PC_LIBS_PRIVATE)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
