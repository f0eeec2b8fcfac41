# cmake -DROOT=repository -DWORK=folder -P: where npm fails, MODE=AUTO writes a program part without the page and MODE=ON is an error.
file(REMOVE_RECURSE "${WORK}")
foreach(mode AUTO ON)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" "-DSOURCE=${ROOT}/web" "-DWORK=${WORK}/${mode}" "-DOUT=${WORK}/${mode}.cpp"
            "-DNO_PAGE=${ROOT}/cmake/no_page_files.cpp.in" -DNPM=false -DNODE=true -DMODE=${mode} -P "${ROOT}/cmake/web_build.cmake"
    RESULT_VARIABLE status ERROR_VARIABLE text)
  if(mode STREQUAL "AUTO")
    file(READ "${WORK}/AUTO.cpp" source)
    if(NOT status EQUAL 0 OR NOT source MATCHES "return {};" OR NOT text MATCHES "warning: npm ci failed")
      message(FATAL_ERROR "AUTO: status ${status}, ${text}")
    endif()
  elseif(status EQUAL 0 OR EXISTS "${WORK}/ON.cpp")
    message(FATAL_ERROR "ON: a failure passed: ${text}")
  endif()
endforeach()
