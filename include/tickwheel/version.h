/* SPDX-License-Identifier: MIT
 *
 * tickwheel/version.h - the version, by the rules of semantic versioning. CMakeLists.txt reads it here.
 */
#ifndef TICKWHEEL_VERSION_H
#define TICKWHEEL_VERSION_H

/* The version as text, and its three parts as numbers for #if. */
#define TW_VERSION "1.0.0"
#define TW_VERSION_MAJOR 1
#define TW_VERSION_MINOR 0
#define TW_VERSION_PATCH 0

#endif
