# What drives studies: toml++ reads them, SQLite keeps their trials. A missing library is a file, not an #ifdef.
find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h)
find_package(SQLite3 QUIET)

file(GLOB STUDY_SOURCES CONFIGURE_DEPENDS src/studies/*.cpp src/sweep/*.cpp)
if(TOMLPLUSPLUS_INCLUDE)
  list(REMOVE_ITEM STUDY_SOURCES ${CMAKE_SOURCE_DIR}/src/studies/study_absent.cpp)
else()
  list(REMOVE_ITEM STUDY_SOURCES ${CMAKE_SOURCE_DIR}/src/studies/study.cpp)
endif()
if(SQLite3_FOUND)
  list(REMOVE_ITEM STUDY_SOURCES ${CMAKE_SOURCE_DIR}/src/sweep/store_absent.cpp)
else()
  list(REMOVE_ITEM STUDY_SOURCES ${CMAKE_SOURCE_DIR}/src/sweep/store.cpp ${CMAKE_SOURCE_DIR}/src/sweep/sqlite.cpp)
endif()

# The built-in studies travel inside the library; the file name is the study's name.
file(GLOB study_files CONFIGURE_DEPENDS src/studies/*.toml)
list(SORT study_files)
set(table "")
foreach(file ${study_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(stem ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND table "    {\"${stem}\", R\"toml(${text})toml\"},\n")
endforeach()
# So do the results that a command reads.
file(GLOB result_files CONFIGURE_DEPENDS src/studies/results/*.csv)
list(SORT result_files)
set(results "")
foreach(file ${result_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(stem ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND results "  if (name == \"${stem}\") return R\"csv(${text})csv\";\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/builtin_studies.cpp CONTENT
"// Generated from src/studies/*.toml: do not edit.
#include \"studies/builtin.h\"

#include <vector>

namespace rankscope {
std::span<const BuiltinStudy> builtin_study_files() {
  static const std::vector<BuiltinStudy> table{
${table}  };
  return table;
}

std::string_view builtin_result(std::string_view name) {
${results}  return {};
}
}  // namespace rankscope
" @ONLY)
list(APPEND STUDY_SOURCES ${CMAKE_BINARY_DIR}/generated/builtin_studies.cpp)

# And the published numbers that ours stand beside.
file(GLOB published_files CONFIGURE_DEPENDS src/studies/published/*.csv)
list(SORT published_files)
set(published "")
foreach(file ${published_files})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  get_filename_component(stem ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND published "  if (name == \"${stem}\") return R\"csv(${text})csv\";\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/published.cpp CONTENT
"// Generated from src/studies/published/*.csv: do not edit.
#include \"base/published.h\"

namespace rankscope {
std::string_view published_csv(std::string_view name) {
${published}  return {};
}
}  // namespace rankscope
" @ONLY)
list(APPEND STUDY_SOURCES ${CMAKE_BINARY_DIR}/generated/published.cpp)

# Over machines: MPI in a library of its own, loaded only under mpirun or srun. Without MPI there is no such file.
find_package(MPI QUIET COMPONENTS CXX)
function(rankscope_add_mpi)
  if(NOT MPI_CXX_FOUND)
    return()
  endif()
  add_library(rankscope_mpi SHARED src/sweep/mpi/transport.cpp)
  target_compile_definitions(rankscope_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(rankscope_mpi PRIVATE rankscope_base MPI::MPI_CXX rankscope_warnings)
endfunction()
