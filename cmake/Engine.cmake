# LibTorch and the library that uses it. Operators register through static initialisers, which a static archive
# drops silently: hence a shared library, fed by one object library that owns the precompiled header.
find_package(LAPACK QUIET)
find_package(OpenMP REQUIRED COMPONENTS CXX)

rankscope_register(lenses Lens lens lenses/lens.h lenses LENS_SOURCES)
rankscope_register(attention AttentionVariant attention attention/variant.h attention_variants ATTENTION_SOURCES)
rankscope_register(tasks Task task tasks/task.h tasks TASK_SOURCES)
rankscope_register(tasks/tokens TokenTask token_task tasks/token_task.h token_tasks TOKEN_TASK_SOURCES)
rankscope_register(studies/runners Runner runner studies/runner.h runners RUNNER_SOURCES)
file(GLOB ENGINE_SOURCES CONFIGURE_DEPENDS src/kernels/cpu/*.cpp src/spectral/*.cpp src/lenses/support/*.cpp src/tensors/*.cpp src/attention/support/*.cpp src/model/*.cpp
  src/operator/*.cpp src/tasks/support/*.cpp src/studies/support/*.cpp src/ops/*.cpp src/train/*.cpp src/pass/*.cpp src/collapse/*.cpp src/paths/*.cpp src/importance/*.cpp src/scan/*.cpp src/bench/*.cpp src/engine/*.cpp)
list(REMOVE_ITEM ENGINE_SOURCES ${CMAKE_SOURCE_DIR}/src/kernels/cpu/dispatch.cpp)

# A missing library is a file, not an #ifdef (a per-target define would also spoil the precompiled header).
if(LAPACK_FOUND)
  list(FILTER ENGINE_SOURCES EXCLUDE REGEX "src/(kernels/cpu/lapack_absent|ops/gemm_torch)\\.cpp$")
else()
  list(FILTER ENGINE_SOURCES EXCLUDE REGEX "src/(kernels/cpu/lapack|ops/gemm_blas)\\.cpp$")
endif()
if(NOT RANKSCOPE_CUDA)
  list(APPEND ENGINE_SOURCES src/kernels/cuda/absent.cpp)
endif()

if(TARGET torch_cuda)
  list(FILTER ENGINE_SOURCES EXCLUDE REGEX "src/(ops/stream|tensors/device|train/cuda_stack|bench/graph)_absent\\.cpp$")
else()
  list(FILTER ENGINE_SOURCES EXCLUDE REGEX "src/(ops/stream_cuda|tensors/device_cuda|train/cuda_stack|bench/graph_cuda)\\.cpp$")
endif()

add_library(rankscope_engine_objects OBJECT ${ENGINE_SOURCES} ${LENS_SOURCES} ${ATTENTION_SOURCES} ${RUNNER_SOURCES}
  ${TASK_SOURCES} ${TOKEN_TASK_SOURCES}
  src/checkpoint/load.cpp src/checkpoint/staged.cpp src/checkpoint/staging.cpp src/checkpoint/stored.cpp
  src/checkpoint/put_back.cpp)
rankscope_unity(rankscope_engine_objects)
target_precompile_headers(rankscope_engine_objects PRIVATE src/torch_pch.h)
target_compile_options(rankscope_engine_objects PRIVATE -Winvalid-pch)
add_library(rankscope_torch INTERFACE)  # torch's headers as system headers, and nothing of its warnings
target_include_directories(rankscope_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(rankscope_torch INTERFACE ${TORCH_LIBRARIES} rankscope_hardened)
target_compile_options(rankscope_torch INTERFACE ${OpenMP_CXX_FLAGS})
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(rankscope_torch INTERFACE ${torch_flags})
target_link_libraries(rankscope_engine_objects PUBLIC rankscope_base rankscope_torch PRIVATE rankscope_warnings)

add_library(rankscope_engine SHARED)
set_target_properties(rankscope_engine PROPERTIES OUTPUT_NAME rankscope DEFINE_SYMBOL "")
target_link_libraries(rankscope_engine PRIVATE rankscope_engine_objects
  PUBLIC rankscope_base $<BUILD_INTERFACE:rankscope_torch>)
target_link_libraries(rankscope_engine PRIVATE OpenMP::OpenMP_CXX)
if(LAPACK_FOUND)
  target_link_libraries(rankscope_engine PRIVATE ${LAPACK_LIBRARIES})
endif()
if(RANKSCOPE_CUDA)
  target_sources(rankscope_engine PRIVATE $<TARGET_OBJECTS:rankscope_cuda>)
  target_link_libraries(rankscope_engine PRIVATE CUDA::cudart)
  set_target_properties(rankscope_engine PROPERTIES LINKER_LANGUAGE CXX)
endif()
