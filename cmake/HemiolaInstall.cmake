# `cmake --install build --prefix DIR`: the program, the library and its CMake package.
include(CMakePackageConfigHelpers)
if(TARGET hemiola_cli)
  install(TARGETS hemiola_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS hemiola EXPORT hemiolaTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/hemiola DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT hemiolaTargets NAMESPACE hemiola:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
configure_package_config_file(cmake/hemiolaConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/hemiolaConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hemiola)
