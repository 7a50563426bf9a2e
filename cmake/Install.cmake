# `cmake --install`: the program, both libraries, headers, the built-in model, and a package for find_package(rankscope).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rankscope)

install(TARGETS rankscope_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS rankscope_base EXPORT rankscope_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET rankscope_mpi)  # found by dlopen, never linked
  install(TARGETS rankscope_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(RANKSCOPE_ENGINE)
  # A file of its own: a consumer who wants only the base must not be asked for torch.
  set_target_properties(rankscope_engine PROPERTIES EXPORT_NAME rankscope)
  install(TARGETS rankscope_engine EXPORT rankscope_engine_targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT rankscope_engine_targets NAMESPACE rankscope:: FILE rankscopeEngineTargets.cmake DESTINATION ${package_dir})
endif()
install(EXPORT rankscope_targets NAMESPACE rankscope:: FILE rankscopeTargets.cmake DESTINATION ${package_dir})

# include/rankscope/ is what users of the library may include. The headers of src/ that those need, and no others, are
# installed behind them in internal/, where they find each other by their rooms.
file(GLOB doors CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/rankscope/*.h)
install(FILES ${doors} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rankscope)
set(waiting ${doors})
set(installed "")
while(waiting)
  list(POP_FRONT waiting header)
  file(STRINGS ${header} lines REGEX "^#include \"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" found ${line})
    if(NOT found IN_LIST installed)
      get_filename_component(room ${found} DIRECTORY)
      install(FILES src/${found} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rankscope/internal/${room})
      list(APPEND installed ${found})
      list(APPEND waiting ${CMAKE_SOURCE_DIR}/src/${found})
    endif()
  endforeach()
endwhile()

install(DIRECTORY models/builtin DESTINATION ${CMAKE_INSTALL_DATADIR}/rankscope/models OPTIONAL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/rankscope)

configure_package_config_file(cmake/rankscopeConfig.cmake.in ${CMAKE_BINARY_DIR}/rankscopeConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/rankscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/rankscopeConfig.cmake ${CMAKE_BINARY_DIR}/rankscopeConfigVersion.cmake
  DESTINATION ${package_dir})

if(RANKSCOPE_TESTS)
  add_test(NAME install.AnInstalledTreeServesFindPackage
    COMMAND ${CMAKE_COMMAND} -DBUILD=${CMAKE_BINARY_DIR} -DSOURCE=${CMAKE_SOURCE_DIR} -DGENERATOR=${CMAKE_GENERATOR}
      "-DFLAGS=${CMAKE_CXX_FLAGS}" "-DPREFIX_PATH=${CMAKE_PREFIX_PATH}" -DENGINE=${RANKSCOPE_ENGINE}
      -DLIBDIR=${CMAKE_INSTALL_LIBDIR} -DBUILD_TYPE=${CMAKE_BUILD_TYPE} -P ${CMAKE_SOURCE_DIR}/tests/install/check.cmake)
  set_tests_properties(install.AnInstalledTreeServesFindPackage PROPERTIES LABELS install TIMEOUT 300)
endif()

# `make deb`: one package that depends on Debian's own libraries, named by dpkg-shlibdeps.
set(CPACK_PACKAGE_NAME rankscope)
set(CPACK_PACKAGE_CONTACT "The Rankscope developers <rankscope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "shows where the attention of a Transformer gains and loses rank")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
include(CPack)
