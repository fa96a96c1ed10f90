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
  if(NOT file MATCHES "^hemiola/[a-z]+\\.h$")
    message(FATAL_ERROR "${file} is installed beside hemiola/*.h")
  endif()
endforeach()
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${SCRATCH}/consumer -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${BUILD_TYPE} -DCMAKE_PREFIX_PATH=${SCRATCH}/prefix -DHEMIOLA_DOCUMENT=${CMAKE_CURRENT_LIST_DIR}/../../docs/library.md)
run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
run(${SCRATCH}/consumer/consumer)
run(${SCRATCH}/consumer/document)
