# The gates as tests: layers, sizes, forbidden calls, words, weak symbols of ISA objects, hardening of the program.
# Each script first proves on planted violations that it can fail.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(gate layers sizes forbidden words)
  add_test(NAME gate_${gate} COMMAND Python3::Interpreter -B "${PROJECT_SOURCE_DIR}/tools/gates/${gate}.py" "${PROJECT_SOURCE_DIR}")
endforeach()
add_test(NAME gate_symbols COMMAND Python3::Interpreter -B "${PROJECT_SOURCE_DIR}/tools/gates/symbols.py"
         "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
if(TARGET cyb-llm AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CYB_SANITIZE)
  add_test(NAME gate_hardening COMMAND Python3::Interpreter -B "${PROJECT_SOURCE_DIR}/tools/gates/hardening.py" "$<TARGET_FILE:cyb-llm>")
endif()
