# The program, the shared library and what `install` puts where.
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.cpp")
  add_executable(cyb-llm src/cli/main.cpp)
  target_include_directories(cyb-llm PRIVATE src)
  target_link_libraries(cyb-llm PRIVATE cyb_flags cyb_cli)
  install(TARGETS cyb-llm RUNTIME DESTINATION bin)
endif()

add_library(cyb SHARED src/api/c_model.cpp src/api/c_session.cpp)
set_target_properties(cyb PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1)
target_include_directories(cyb PRIVATE src PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:include>)
target_link_libraries(cyb PRIVATE cyb_flags cyb_api cyb_runtime cyb_import cyb_paths cyb_text cyb_backends cyb_model cyb_ops
                      cyb_tensor cyb_base)
# Only the C ABI leaves the library: symbols of the static libraries inside stay hidden.
# --as-needed: `pull` is the program's alone, so the library does not need libcurl.
target_link_options(cyb PRIVATE -Wl,--exclude-libs,ALL,--as-needed)
if(NOT CYB_SANITIZE)
  target_link_options(cyb PRIVATE -Wl,--no-undefined)
endif()
install(TARGETS cyb LIBRARY DESTINATION lib)
install(DIRECTORY include/cyb DESTINATION include)
# pkg-config file, relative to where it lies: the prefix is chosen at install time.
configure_file(cmake/cyb.pc.in cyb.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/cyb.pc" DESTINATION lib/pkgconfig)
