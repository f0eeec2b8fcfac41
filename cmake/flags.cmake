# Compiler flags. FMA contraction is off everywhere: kernels ask for fused operations explicitly.
# Hardening: position-independent executables, full RELRO, stack protector, _FORTIFY_SOURCE=3, no executable stack.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C CXX)
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fstack-protector-strong>)

add_library(cyb_flags INTERFACE)
target_compile_options(cyb_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wpedantic
                       -ffp-contract=off -fno-math-errno)
# Warnings are errors with the compilers that continuous integration has. Others, newer ones above all, warn of more: people
# who build with them must get a program all the same.
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
   OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 20))
  set(known_compiler ON)
endif()
option(CYB_WERROR "Warnings are errors" ${known_compiler})
if(CYB_WERROR)
  target_compile_options(cyb_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these through std::expected and fmt at -O2.
  target_compile_options(cyb_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's std::stable_sort itself uses what the standard deprecates.
  target_compile_options(cyb_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CYB_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-U_FORTIFY_SOURCE> $<$<COMPILE_LANGUAGE:C,CXX>:-D_FORTIFY_SOURCE=3>)
endif()
# For code that needs no speed: half of a build from nothing is tests. What they test is compiled as it ships.
set(cyb_fast_build $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
if(CYB_SANITIZE)
  add_compile_options(-fsanitize=${CYB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CYB_SANITIZE})
else()
  add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
endif()

find_program(CYB_CCACHE ccache)
mark_as_advanced(CYB_CCACHE)
if(CYB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CYB_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CYB_CCACHE}")
endif()
