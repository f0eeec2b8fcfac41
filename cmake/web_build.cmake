# cmake -P: copies SOURCE (web/) to WORK, installs what package-lock.json names there, builds the page and writes it as C++ to OUT.
# MODE=ON: a failure is an error. MODE=AUTO: it is a warning, and OUT becomes NO_PAGE.
function(fail_step what detail)
  string(SUBSTRING "${detail}" 0 400 detail)
  message(NOTICE "${detail}")
  if(MODE STREQUAL "ON")
    message(FATAL_ERROR "the page: ${what} failed")
  endif()
  message(NOTICE "warning: ${what} failed, so `serve` shows no page at / (all else is built); `make web` tries again")
  configure_file("${NO_PAGE}" "${OUT}" COPYONLY)
  file(TOUCH "${OUT}")
endfunction()

file(REMOVE_RECURSE "${WORK}/src" "${WORK}/dist")
foreach(name src index.html package.json package-lock.json tsconfig.json vite.config.js pack.mjs)
  file(COPY "${SOURCE}/${name}" DESTINATION "${WORK}")
endforeach()

# Sums of the lock file and versions, so that a change of either installs again.
file(SHA256 "${WORK}/package-lock.json" lock)
execute_process(COMMAND "${NODE}" --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
set(installed "")
if(EXISTS "${WORK}/installed")
  file(READ "${WORK}/installed" installed)
endif()
if(NOT installed STREQUAL "${lock} ${version}")
  # No script of a package runs; an unreachable registry is given up soon.
  execute_process(
    COMMAND "${NPM}" ci --include=dev --ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1
            --fetch-retry-mintimeout=1000 --fetch-timeout=30000
    WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 300)
  if(NOT status EQUAL 0)
    fail_step("npm ci" "${err}")
    return()
  endif()
  file(WRITE "${WORK}/installed" "${lock} ${version}")
endif()
execute_process(COMMAND "${NODE}" node_modules/vite/bin/vite.js build --logLevel error WORKING_DIRECTORY "${WORK}"
                RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE err TIMEOUT 300)
if(NOT status EQUAL 0)
  fail_step("vite build" "${err}")
  return()
endif()
execute_process(COMMAND "${NODE}" pack.mjs dist "${OUT}" WORKING_DIRECTORY "${WORK}" RESULT_VARIABLE status ERROR_VARIABLE err)
if(NOT status EQUAL 0)
  fail_step("pack.mjs" "${err}")
endif()
