# Installs BUILD into an empty prefix below SCRATCH, runs the program there, builds the consumer against the
# installed package and runs it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "exit code ${status}: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)
run(${SCRATCH}/prefix/${BIN}/hemiola check all-reduce/ring --ranks 4 --size 4KiB)
file(GLOB_RECURSE installed RELATIVE ${SCRATCH}/prefix/include ${SCRATCH}/prefix/include/*)
foreach(file ${installed})
  if(NOT file MATCHES "^hemiola/(parts/)?[a-z_]+\\.h$")
    message(FATAL_ERROR "${file} is installed beside hemiola/*.h")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${SCRATCH}/consumer -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DHEMIOLA_DOCUMENT=${CMAKE_CURRENT_LIST_DIR}/../../docs/library.md)
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
run(${SCRATCH}/consumer/consumer)
run(${SCRATCH}/consumer/document)

# The project of docs/extending.md, as a stranger would build it.
set(document ${CMAKE_CURRENT_LIST_DIR}/../../docs/extending.md)
run(${CMAKE_CURRENT_LIST_DIR}/../extending/extract ${document} ${CMAKE_CURRENT_LIST_DIR}/../.. ${SCRATCH}/extension)
run(${CMAKE_COMMAND} -S ${SCRATCH}/extension/mine -B ${SCRATCH}/mine -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion")
run(${CMAKE_COMMAND} --build ${SCRATCH}/mine)
run(${CMAKE_CURRENT_LIST_DIR}/../extending/run_commands ${document} ${SCRATCH}/mine/mine ${SCRATCH}/extension mine)

# Parts that break their contracts: every verb says so, and what.
execute_process(COMMAND ${SCRATCH}/consumer/broken machine list RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE error)
file(READ ${CMAKE_CURRENT_LIST_DIR}/consumer/broken.txt expected)
if(NOT status EQUAL 2 OR NOT output STREQUAL "" OR NOT error STREQUAL "${expected}")
  message(FATAL_ERROR "exit code ${status}, and not what broken.txt says:\n${output}${error}")
endif()
