# What is installed of each library: an archive and a shared object, a pkg-config file, a place in the CMake package.
#
#   tickwheel_library(NAME DESCRIPTION "..." SOURCES FILE... [OBJECTS TARGET]
#                     [NEEDS LIBRARY...]      other libraries of ours, e.g. tickwheel_sched
#                     [LINKS LIBRARY...]      of others, which users do not see
#                     [REQUIRES MODULE...])   their pkg-config names, for static linking
#
# makes the targets NAME_static and NAME_shared, tickwheel::PART_static and tickwheel::PART_shared to those who find the
# package: PART is NAME without tickwheel_, and the library that has nothing but that name has no part. The package also
# has tickwheel::PART (package.cmake.in), the shared one.
include(GNUInstallDirs)

function(tickwheel_library name)
    cmake_parse_arguments(is "" "DESCRIPTION;OBJECTS" "SOURCES;NEEDS;LINKS;REQUIRES" ${ARGN})
    string(REGEX REPLACE "^tickwheel_?" "" part ${name})
    if(part)
        set_property(GLOBAL APPEND PROPERTY TICKWHEEL_PARTS ${part})
        string(APPEND part "_")
    else()
        set_property(GLOBAL APPEND PROPERTY TICKWHEEL_PARTS ${name})
    endif()
    set(sources ${is_SOURCES})
    if(is_OBJECTS)
        list(APPEND sources $<TARGET_OBJECTS:${is_OBJECTS}>)
    endif()
    foreach(kind static shared)
        string(TOUPPER ${kind} KIND)
        set(library ${name}_${kind})
        add_library(${library} ${KIND} ${sources})
        set_target_properties(${library} PROPERTIES OUTPUT_NAME ${name} EXPORT_NAME ${part}${kind}
            ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
        target_include_directories(${library} PUBLIC
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        list(TRANSFORM is_NEEDS APPEND _${kind} OUTPUT_VARIABLE needs)
        target_link_libraries(${library} PUBLIC ${needs} PRIVATE $<BUILD_INTERFACE:tickwheel_options> ${is_LINKS})
        install(TARGETS ${library} EXPORT tickwheel)
    endforeach()
    set(map ${CMAKE_CURRENT_SOURCE_DIR}/${name}.map)
    set_target_properties(${name}_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
        LINK_DEPENDS ${map})
    if(is_NEEDS) # below a prefix of its own, a library finds the others of ours beside it
        set_target_properties(${name}_shared PROPERTIES INSTALL_RPATH $ORIGIN)
    endif()
    target_link_options(${name}_shared PRIVATE -Wl,--version-script=${map})

    foreach(dir INCLUDEDIR LIBDIR) # below the prefix, unless the packager has said where
        set(PC_${dir} "${CMAKE_INSTALL_${dir}}")
        cmake_path(IS_RELATIVE PC_${dir} below)
        if(below)
            string(PREPEND PC_${dir} "\${prefix}/")
        endif()
    endforeach()
    set(PC_NAME ${name})
    set(PC_DESCRIPTION ${is_DESCRIPTION})
    list(JOIN is_NEEDS " " PC_REQUIRES)
    list(JOIN is_REQUIRES " " PC_REQUIRES_PRIVATE)
    set(links ${is_LINKS})
    list(FILTER links INCLUDE REGEX "^(m|ev)$") # what has no pkg-config file
    list(TRANSFORM links PREPEND -l)
    list(JOIN links " " PC_LIBS_PRIVATE)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
