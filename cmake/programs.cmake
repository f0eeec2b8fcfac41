# The program, the shared library and what `install` puts where.
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/src/cli/main.cpp")
  add_executable(cyb-llm src/cli/main.cpp)
  target_include_directories(cyb-llm PRIVATE src)
  target_link_libraries(cyb-llm PRIVATE cyb_flags cyb_cli)
  install(TARGETS cyb-llm RUNTIME DESTINATION bin)
endif()
