# Unity builds: a few files of one folder are compiled as one. Most of a file's compile time goes to headers and to the
# inline code of CLI11, JSON and LibTorch, and that is then paid once a group. `make compilers` proves that every file
# also compiles alone. A developer who edits one file all day may want -DRANKSCOPE_UNITY=OFF.
# So does whoever has a compiler cache: it knows single files, and what one checkout compiled serves the next.
if(CMAKE_CXX_COMPILER_LAUNCHER)
  option(RANKSCOPE_UNITY "Compile a few files of a folder together" OFF)
else()
  option(RANKSCOPE_UNITY "Compile a few files of a folder together" ON)
endif()
set(RANKSCOPE_UNITY_BYTES 40000 CACHE STRING "About this much source in one group: more costs less, fewer run in parallel")

# Names that a file defines at the margin. Two files that share one cannot be compiled as one, because unnamed
# namespaces would become the same. Overloads count too: a group must not change which one is called.
function(rankscope_local_names file out_var)
  file(READ ${file} text)
  string(REPLACE ";" "@" text "${text}")
  string(REGEX REPLACE "[][]" " " text "${text}")  # brackets would hold a list together
  set(names "")
  string(REGEX MATCHALL "\n((struct|class|enum) [A-Za-z_0-9]+|using [A-Za-z_0-9]+ =)" types "${text}")
  list(TRANSFORM types REPLACE " =$" "")  # `using std::string` may stand in two files
  string(REGEX MATCHALL "\n[A-Za-z][A-Za-z_0-9:<>*&, ]*[ *&>][A-Za-z_0-9]+\\(" functions "${text}")
  foreach(line ${types} ${functions})
    string(REGEX MATCH "([A-Za-z_0-9]+)\\(?$" name "${line}")
    list(APPEND names ${CMAKE_MATCH_1})
  endforeach()
  string(REGEX MATCHALL "\n(enum|const|constexpr) [^@}]*" constants "${text}")
  string(REGEX MATCHALL "k[A-Z][A-Za-z_0-9]*" constants "${constants}")
  set(${out_var} ${names} ${constants} PARENT_SCOPE)
endfunction()

# rankscope_unity(<target>): puts each of the target's own sources into the first group of its folder that has room and
# none of its names.
function(rankscope_unity target)
  if(NOT RANKSCOPE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(TRANSFORM sources REPLACE "^${CMAKE_SOURCE_DIR}/" "")
  list(FILTER sources INCLUDE REGEX "^(src|tests)/.*\\.cpp$")
  list(SORT sources)
  foreach(source ${sources})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(options OR definitions)
      continue()  # it has flags of its own
    endif()
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    file(SIZE ${CMAKE_SOURCE_DIR}/${source} size)
    rankscope_local_names(${CMAKE_SOURCE_DIR}/${source} names)
    set(number 0)
    while(TRUE)
      set(group ${folder}_${number})
      set(clash FALSE)
      foreach(name ${names})
        if(name IN_LIST ${group}_names)
          set(clash TRUE)
          break()
        endif()
      endforeach()
      if(NOT clash AND NOT "${${group}_size}" GREATER RANKSCOPE_UNITY_BYTES)
        break()
      endif()
      math(EXPR number "${number} + 1")
    endwhile()
    list(APPEND ${group}_names ${names})
    math(EXPR ${group}_size "0${${group}_size} + ${size}")
    set_source_files_properties(${source} ${CMAKE_SOURCE_DIR}/${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes whatever stands outside of the file it was given for a header, and warns of a class there that has a
  # member from an unnamed namespace. Of real headers it still warns where files are compiled alone.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
