# `cmake --install build --prefix DIR`: the program, the library and its CMake package.
include(CMakePackageConfigHelpers)
get_property(layers GLOBAL PROPERTY HEMIOLA_LAYERS)
get_property(layer_names GLOBAL PROPERTY HEMIOLA_LAYER_NAMES)
if(TARGET hemiola_cli)
  install(TARGETS hemiola_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS hemiola hemiola_options ${layers} EXPORT hemiolaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(name ${layer_names})
  install(DIRECTORY src/${name} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hemiola FILES_MATCHING PATTERN "*.h"
    PATTERN "*test*" EXCLUDE)
endforeach()
install(FILES include/hemiola/record.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hemiola)
install(EXPORT hemiolaTargets NAMESPACE hemiola:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
configure_package_config_file(cmake/hemiolaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
