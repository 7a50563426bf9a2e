# The training kernels: every file of src/kernels/cpu/simd is compiled once per instruction set, each time into a
# namespace of that name, and kernels/cpu/dispatch.cpp picks one when the program runs.
file(GLOB SIMD_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cpu/simd/*.cpp)

# rankscope_instruction_set(<name> <flags>...)
function(rankscope_instruction_set name)
  add_library(rankscope_kernels_${name} OBJECT ${SIMD_SOURCES})
  target_include_directories(rankscope_kernels_${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(rankscope_kernels_${name} PRIVATE rankscope_warnings)
  target_compile_definitions(rankscope_kernels_${name} PRIVATE RANKSCOPE_SIMD=${name})
  # Square roots without errno vectorise; vectors as arguments are inlined, so that their ABI does not matter.
  target_compile_options(rankscope_kernels_${name} PRIVATE ${ARGN} $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno
    -fno-trapping-math -ffp-contract=fast -Wno-psabi
    $<$<CXX_COMPILER_ID:GNU>:-Wno-unknown-pragmas>)
  target_sources(rankscope_base PRIVATE $<TARGET_OBJECTS:rankscope_kernels_${name}>)
endfunction()

target_sources(rankscope_base PRIVATE src/kernels/cpu/dispatch.cpp)
rankscope_instruction_set(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  rankscope_instruction_set(avx2 -mavx2 -mfma)
  rankscope_instruction_set(avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512)
  set_source_files_properties(src/kernels/cpu/dispatch.cpp PROPERTIES COMPILE_DEFINITIONS RANKSCOPE_X86_KERNELS)
endif()
