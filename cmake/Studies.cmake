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

# The files of a pattern as lines of C++ that carry their text: LINE says how, with @stem@ and @text@ in it.
function(embed_files PATTERN LINE OUT)
  file(GLOB files CONFIGURE_DEPENDS ${PATTERN})
  list(SORT files)
  set(lines "")
  foreach(file ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(stem ${file} NAME_WE)
    file(READ ${file} text)
    string(REPLACE "@stem@" "${stem}" line "${LINE}")
    string(REPLACE "@text@" "${text}" line "${line}")
    string(APPEND lines "${line}\n")
  endforeach()
  set(${OUT} "${lines}" PARENT_SCOPE)
endfunction()
set(csv_line "  if (name == \"@stem@\") return R\"csv(@text@)csv\";")

# The built-in studies travel inside the library; the file name is the study's name. So do the results that a command reads.
embed_files(src/studies/*.toml "    {\"@stem@\", R\"toml(@text@)toml\"}," table)
embed_files(src/studies/results/*.csv "${csv_line}" results)
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
embed_files(src/studies/published/*.csv "${csv_line}" published)
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
