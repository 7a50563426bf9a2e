# A fault in a reader of files from outside should end the program and not carry out what the file says: guarded
# stacks, checked copies, addresses that nobody can know, tables that are read-only once they are filled.
# scripts/check-binaries.sh proves it of every binary, in the build folder and installed.
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)  # makes CMake link programs as what they were compiled for
add_link_options(LINKER:-z,relro,-z,now)
# For the program and both libraries; tests and benches too, which share the engine's precompiled header.
add_library(rankscope_hardened INTERFACE)
target_compile_options(rankscope_hardened INTERFACE -fstack-protector-strong
  # Checked copies need the optimiser; distributions that set a level of their own would warn of another.
  "$<$<CONFIG:Release>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>")

# Where libraries are looked for: beside the binary, and where they are installed beside it, wherever that is. The same
# in the build folder and installed: CMake would make room for a change with colons, and the loader takes an empty entry
# for the working directory, which may be anybody's.
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
