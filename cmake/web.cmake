# The page that `cyb-llm serve` shows at /: web/ built by npm and Vite in the build folder, and made into page_files.cpp, part of
# the server's layer. AUTO builds it where npm is found; a build that fails (no registry, say) is then a program without the page.
set(CYB_WEB AUTO CACHE STRING "Build the page of `serve`: ON (a failure is an error), OFF, AUTO (where npm is found)")
set_property(CACHE CYB_WEB PROPERTY STRINGS AUTO ON OFF)
find_program(CYB_NPM npm)
find_program(CYB_NODE NAMES node nodejs)
mark_as_advanced(CYB_NPM CYB_NODE)

set(page_files "${PROJECT_BINARY_DIR}/web/page_files.cpp")
set(no_page_files "${PROJECT_SOURCE_DIR}/cmake/no_page_files.cpp.in")
string(TOUPPER "${CYB_WEB}" web_mode)
if(web_mode STREQUAL "ON" AND NOT (CYB_NPM AND CYB_NODE))
  message(FATAL_ERROR "CYB_WEB=ON needs nodejs (18 or newer) and npm: `make web` installs them")
endif()
if(web_mode STREQUAL "OFF" OR NOT (CYB_NPM AND CYB_NODE))
  message(STATUS "No page at / of `serve`: CYB_WEB is ${CYB_WEB}, npm: ${CYB_NPM}")
  configure_file("${no_page_files}" "${page_files}" COPYONLY)
else()
  file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/web/src/*")
  set(web "${PROJECT_SOURCE_DIR}/web")
  add_custom_command(
    OUTPUT "${page_files}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${web}" "-DWORK=${PROJECT_BINARY_DIR}/web/work" "-DOUT=${page_files}"
            "-DNO_PAGE=${no_page_files}" "-DNPM=${CYB_NPM}" "-DNODE=${CYB_NODE}" "-DMODE=${web_mode}" -P
            "${PROJECT_SOURCE_DIR}/cmake/web_build.cmake"
    DEPENDS ${web_sources} "${web}/index.html" "${web}/package.json" "${web}/package-lock.json" "${web}/tsconfig.json"
            "${web}/vite.config.js" "${web}/pack.mjs" "${PROJECT_SOURCE_DIR}/cmake/web_build.cmake" "${no_page_files}"
    COMMENT "Building the page of `serve` from web/"
    VERBATIM)
endif()
target_sources(cyb_server PRIVATE "${page_files}")
