# rankscope_register(<folder> <type> <prefix> <header> <output-target>)
#
# The file name is the registration: every src/<folder>/<stem>.cpp defines `<prefix>_<stem>`, and this writes the
# table that lists them. A file whose symbol does not match its name fails at link, naming the missing symbol.
function(rankscope_register folder type prefix header function out_var)
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/${folder} ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  list(SORT entries)
  set(declarations "")
  set(table "")
  set(sources "")
  foreach(entry ${entries})
    string(REGEX REPLACE "\\.cpp$" "" stem ${entry})
    string(APPEND declarations "extern const ${type} ${prefix}_${stem};\n")
    string(APPEND table "      &${prefix}_${stem},\n")
    list(APPEND sources ${CMAKE_SOURCE_DIR}/src/${folder}/${entry})
  endforeach()
  string(REPLACE "/" "_" flat ${folder})
  set(generated ${CMAKE_BINARY_DIR}/generated/${flat}_register.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from the file names of src/${folder}: do not edit.
#include \"${header}\"

namespace rankscope {
${declarations}
const std::vector<const ${type}*>& ${function}() {
  static const std::vector<const ${type}*> table{
${table}  };
  return table;
}
}  // namespace rankscope
" @ONLY)
  set(${out_var} ${sources} ${generated} PARENT_SCOPE)
endfunction()

# rankscope_name_list(<folder> <header> <function> <output-variable>): the same list as names alone, for those who must not
# see what is behind them (here: torch).
function(rankscope_name_list folder header function out_var)
  file(GLOB entries CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/src/${folder} ${CMAKE_SOURCE_DIR}/src/${folder}/*.cpp)
  list(SORT entries)
  list(TRANSFORM entries REPLACE "(.*)\\.cpp$" "\"\\1\"")
  list(JOIN entries ", " names)
  set(generated ${CMAKE_BINARY_DIR}/generated/${folder}_names.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT
"// Generated from the file names of src/${folder}: do not edit.
#include \"${header}\"

namespace rankscope {
const std::vector<std::string>& ${function}() {
  static const std::vector<std::string> names{${names}};
  return names;
}
}  // namespace rankscope
" @ONLY)
  set(${out_var} ${generated} PARENT_SCOPE)
endfunction()

# rankscope_tests(<room> [TORCH] [ALONE]): tests/<room>/*_test.cpp as one program and one ctest case. ALONE: each file is
# compiled by itself, because names of one are in the way of another's headers.
function(rankscope_tests room)
  cmake_parse_arguments(ARG "TORCH;ALONE" "" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${room}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" flat ${room})
  # Objects first: an executable compiles with -fPIE, and GCC drops a precompiled header whose flags differ.
  add_library(test_${flat}_objects OBJECT ${sources})
  if(NOT ARG_ALONE)
    rankscope_unity(test_${flat}_objects)
  endif()
  target_include_directories(test_${flat}_objects PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  add_executable(test_${flat})
  if(ARG_TORCH)
    target_link_libraries(test_${flat}_objects PRIVATE rankscope_engine rankscope_warnings GTest::gtest)
    target_precompile_headers(test_${flat}_objects REUSE_FROM rankscope_engine_objects)
    target_link_libraries(test_${flat} PRIVATE test_${flat}_objects rankscope_engine OpenMP::OpenMP_CXX GTest::gtest
      GTest::gtest_main)
  else()
    target_link_libraries(test_${flat}_objects PRIVATE rankscope_base rankscope_warnings GTest::gtest)
    target_link_libraries(test_${flat} PRIVATE test_${flat}_objects rankscope_base GTest::gtest GTest::gtest_main)
  endif()
  # One process a room, not one a case: loading torch takes longer than most cases.
  add_test(NAME ${flat} COMMAND test_${flat} --gtest_brief=1)
  set_tests_properties(${flat} PROPERTIES LABELS ${flat} TIMEOUT 600
    ENVIRONMENT "RANKSCOPE_SOURCE=${CMAKE_SOURCE_DIR};RANKSCOPE_PROGRAM=$<TARGET_FILE:rankscope_program>")
endfunction()
