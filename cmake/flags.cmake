# Compiler flags. FMA contraction is off everywhere: kernels ask for fused operations explicitly.
add_library(cyb_flags INTERFACE)
target_compile_options(cyb_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror
                       -ffp-contract=off -fno-math-errno -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports false positives of these through std::expected and fmt at -O2.
  target_compile_options(cyb_flags INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
include(CheckCXXCompilerFlag)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CYB_SANITIZE)
  target_compile_options(cyb_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()
if(CYB_SANITIZE)
  add_compile_options(-fsanitize=${CYB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CYB_SANITIZE})
else()
  add_link_options(-Wl,-z,relro,-z,now)
endif()
