# The CUDA kernels: built when the LibTorch that was found has CUDA. RANKSCOPE_CUDA_CHECK=ON compiles them with
# whatever nvcc is there, so that a machine without a GPU (and a LibTorch without CUDA) sees their errors too.
option(RANKSCOPE_CUDA_CHECK "Compile the CUDA kernels even if LibTorch has no CUDA" OFF)
set(RANKSCOPE_CUDA OFF)
if(TARGET torch_cuda)
  set(RANKSCOPE_CUDA ON)
endif()
if(NOT RANKSCOPE_CUDA AND NOT RANKSCOPE_CUDA_CHECK)
  return()
endif()

enable_language(CUDA)
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")  # CMake 3.25 does not know that nvcc speaks it
find_package(CUDAToolkit REQUIRED)
# LibTorch puts its own list of architectures here; ours is the one the kernels are written for.
set(CMAKE_CUDA_FLAGS "")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
file(GLOB CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cuda/*.cu)
add_library(rankscope_cuda OBJECT ${CUDA_SOURCES})
# sm_90a: products of a warpgroup are Hopper's alone. CMake 3.25 does not know the name.
set_target_properties(rankscope_cuda PROPERTIES CUDA_ARCHITECTURES OFF CUDA_STANDARD 20)
target_include_directories(rankscope_cuda PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(rankscope_cuda PRIVATE -gencode=arch=compute_90a,code=sm_90a -Xcompiler=-Wall,-Wextra
  $<$<BOOL:${RANKSCOPE_WERROR}>:-Werror=all-warnings;-Xcompiler=-Werror>)
