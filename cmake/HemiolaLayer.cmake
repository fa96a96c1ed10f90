# A layer is a folder of src/ with its rooms (folders in it): their .cc files make a static library, their *_test.cc files and
# what the room testing/ holds one test program.

add_library(hemiola_options INTERFACE)
target_compile_features(hemiola_options INTERFACE cxx_std_20)
target_include_directories(hemiola_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
# How far Release optimises. Two thirds of the compile time is GCC's optimiser, so -O3 is for the engines, -O2 for what
# they and the proofs run through, -O1 for code that reads, plans and prints: docs/measurements.md, "Build and test".
# With sanitizers these are not optimised at all: that takes a third of the time to compile.
add_library(hemiola_quick_build INTERFACE)
target_compile_options(hemiola_quick_build INTERFACE
  $<$<CONFIG:Release>:-O1> $<$<BOOL:${HEMIOLA_SANITIZE}>:-O0>)
# Tests spend their time in the libraries, and with AddressSanitizer a compiler takes three times as long to optimise them.
add_library(hemiola_test_build INTERFACE)
target_compile_options(hemiola_test_build INTERFACE -O0)
add_library(hemiola_usual_build INTERFACE)
target_compile_options(hemiola_usual_build INTERFACE $<$<CONFIG:Release>:-O2>)
add_library(hemiola_fast_build INTERFACE)
# GCC lets a large unit grow by 40 % when it inlines; a batch is one, and would be slower than its sources compiled alone.
target_compile_options(hemiola_fast_build INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:--param=inline-unit-growth=200>)
add_library(hemiola_warnings INTERFACE)
# Fields that a designated initializer leaves out have their default: that is meant.
target_compile_options(hemiola_warnings INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion
  -Wno-missing-field-initializers
  # GCC 12 warns falsely about "text" + std::string once it optimises (its bug 105651).
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-restrict>
  # A batch is not the main file that GCC exempts from this.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${HEMIOLA_UNITY}>>:-Wno-subobject-linkage>
  $<$<BOOL:${HEMIOLA_WERROR}>:-Werror>)
if(HEMIOLA_SANITIZE)
  string(REPLACE ";" "," _sanitizers "${HEMIOLA_SANITIZE}")
  # AddressSanitizer finds what goes through null and beyond objects, and nothing here makes objects of bytes or casts down:
  # these checks of every access to a member find nothing more, and are a quarter of the time to compile.
  add_compile_options(-fsanitize=${_sanitizers} -fno-sanitize=null,alignment,object-size,vptr -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${_sanitizers})
endif()

# Sources that are made from a list of registrations are compiled alone: a program with longer lists replaces
# these and nothing else (docs/extending.md, tests/extending). Global property HEMIOLA_REGISTRATIONS: all of them.
function(hemiola_keep_registrations_apart)
  foreach(source ${ARGN})
    file(STRINGS ${source} found
      REGEX "#include \"machine/devices/(arbitration_list|arbitration_names)\\.h\"")
    if(found)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      set_property(GLOBAL APPEND PROPERTY HEMIOLA_REGISTRATIONS ${source})
    endif()
  endforeach()
endfunction()

# hemiola_layer(NAME BUILD quick|usual|fast DEPENDS LIBRARY...)
function(hemiola_layer name)
  cmake_parse_arguments(LAYER "" "BUILD" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$|/testing/")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$|/testing/")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS src/${name}/*.h)
  if(NOT sources)
    # A layer without a source yet still has to be a library that others can link.
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty_${name}.cc)
    file(CONFIGURE OUTPUT ${sources} CONTENT "// The layer has no source yet.\n")
  endif()
  add_library(hemiola_${name} STATIC ${sources} ${headers})
  hemiola_keep_registrations_apart(${sources})
  set_target_properties(hemiola_${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_link_libraries(hemiola_${name} PUBLIC hemiola_options ${LAYER_DEPENDS} PRIVATE
    $<BUILD_INTERFACE:hemiola_warnings> $<BUILD_INTERFACE:hemiola_${LAYER_BUILD}_build>)
  set_property(GLOBAL APPEND PROPERTY HEMIOLA_LAYERS hemiola_${name})
  set_property(GLOBAL APPEND PROPERTY HEMIOLA_LAYER_NAMES ${name})
  if(HEMIOLA_TESTS AND tests)
    add_executable(${name}_test ${tests})
    # Helpers of tests have names that differ within as many.
    set_target_properties(${name}_test PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
    target_link_libraries(${name}_test PRIVATE hemiola_${name} hemiola_warnings hemiola_test_build rapidcheck GTest::gmock GTest::gtest_main)
    target_compile_definitions(${name}_test PRIVATE HEMIOLA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    # RapidCheck draws from a fixed seed, so that a test run can be repeated.
    gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES LABELS unit ENVIRONMENT RC_PARAMS=seed=1)
  endif()
endfunction()

# Embeds every .yaml, .csv, .rule and .py file below the folders into a layer: see core/embedded.h.
function(hemiola_embed layer)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/embedded_${layer}.cc)
  set(files)
  foreach(folder ${ARGN})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${folder}/*.yaml ${folder}/*.csv ${folder}/*.rule
         ${folder}/*.py)
    list(APPEND files ${found})
  endforeach()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DFILES=${files}" -DROOT=${PROJECT_SOURCE_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(hemiola_${layer} PRIVATE ${out})
endfunction()

# Generates protobuf code privately for a layer.
function(hemiola_protobuf layer proto)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${proto})
    message(STATUS "${proto} is missing: no protobuf code for ${layer}")
    return()
  endif()
  get_filename_component(stem ${proto} NAME_WE)
  get_filename_component(folder ${proto} DIRECTORY)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/proto/${stem})
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/proto)
  add_custom_command(OUTPUT ${out}.pb.cc ${out}.pb.h
    COMMAND protobuf::protoc --cpp_out=${CMAKE_CURRENT_BINARY_DIR}/proto -I ${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_SOURCE_DIR}/${proto}
    DEPENDS ${proto} VERBATIM)
  add_library(hemiola_${stem}_proto OBJECT ${out}.pb.cc)
  set_target_properties(hemiola_${stem}_proto PROPERTIES UNITY_BUILD OFF)
  target_include_directories(hemiola_${stem}_proto SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/proto)
  target_link_libraries(hemiola_${stem}_proto PUBLIC protobuf::libprotobuf)
  target_sources(hemiola_${layer} PRIVATE $<TARGET_OBJECTS:hemiola_${stem}_proto> ${out}.pb.h)
  set_property(GLOBAL APPEND PROPERTY HEMIOLA_GENERATED hemiola_${stem}_proto)
  target_include_directories(hemiola_${layer} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/proto)
  target_link_libraries(hemiola_${layer} PUBLIC protobuf::libprotobuf)
  if(TARGET ${layer}_test)  # tests read back what the layer wrote
    target_include_directories(${layer}_test SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/proto)
  endif()
endfunction()

# The library for others: the objects of all layers so far as one archive (shared with BUILD_SHARED_LIBS), whose
# users see include/ and nothing else.
function(hemiola_library name)
  get_property(layers GLOBAL PROPERTY HEMIOLA_LAYERS)
  get_property(generated GLOBAL PROPERTY HEMIOLA_GENERATED)
  set(objects ${layers} ${generated})
  list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  add_library(${name} ${objects})
  add_library(hemiola::${name} ALIAS ${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 0.1)
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} PRIVATE fmt::fmt ZLIB::ZLIB ${HEMIOLA_YAML} pugixml::pugixml protobuf::libprotobuf
    SQLite::SQLite3 LibArchive::LibArchive simdjson::simdjson Threads::Threads ${HEMIOLA_TREE_SITTER_LIBRARY})
endfunction()

# The command line: all .cc files of a folder and its rooms but its tests. The Python module has it too, so all but main.cc is a library.
function(hemiola_program name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources)
    message(STATUS "${folder} has no source: no program")
    return()
  endif()
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(${name}_command STATIC ${sources})
  set_target_properties(${name}_command PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name}_command PUBLIC hemiola_report hemiola_compile Threads::Threads PRIVATE hemiola_warnings hemiola_quick_build CLI11::CLI11)
  target_compile_definitions(${name}_command PRIVATE HEMIOLA_VERSION="${PROJECT_VERSION}" HEMIOLA_BUILD_TYPE="${CMAKE_BUILD_TYPE}"
    HEMIOLA_COMPILER="${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(TARGET ${name})  # hemiola/command.h
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${name}_command>)
  endif()
  add_executable(${name}_cli ${folder}/main.cc)
  set_target_properties(${name}_cli PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(${name}_cli PRIVATE ${name}_command hemiola_warnings)
endfunction()
