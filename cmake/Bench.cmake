# One program a question, built on request: `cmake --build build --target bench_scan`.
file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cpp ${CMAKE_SOURCE_DIR}/bench/bank.cpp)
foreach(source ${benches})
  get_filename_component(stem ${source} NAME_WE)
  add_executable(${stem} EXCLUDE_FROM_ALL ${source})
  target_include_directories(${stem} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${stem} PRIVATE rankscope_engine rankscope_warnings)
endforeach()
if(RANKSCOPE_CUDA)
  add_executable(cuda_kernels_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/cuda/kernels_bench.cu
    $<TARGET_OBJECTS:rankscope_cuda>)
  target_link_libraries(cuda_kernels_bench PRIVATE rankscope_base CUDA::cudart)
  set_target_properties(cuda_kernels_bench PROPERTIES LINKER_LANGUAGE CXX CUDA_ARCHITECTURES 90-real CUDA_STANDARD 20)
endif()
