find_package(GTest REQUIRED)
foreach(room base kernels theory checkpoint report)
  rankscope_tests(${room})
endforeach()
if(TOMLPLUSPLUS_INCLUDE AND SQLite3_FOUND)  # without them there are no studies
  rankscope_tests(sweep)
  add_executable(fake_study tests/sweep/fake_study.cpp)  # what the tests kill
  target_include_directories(fake_study PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(fake_study PRIVATE rankscope_base rankscope_warnings)
  add_dependencies(test_sweep fake_study)
  set_property(TEST sweep APPEND PROPERTY ENVIRONMENT "RANKSCOPE_FAKE_STUDY=$<TARGET_FILE:fake_study>")
endif()
if(ICU_FOUND)  # without it there is no tokenizer to test
  rankscope_tests(text)
endif()
if(RANKSCOPE_ENGINE)
  foreach(room model spectral operator ops tasks train studies lenses scan contract)
    rankscope_tests(${room} TORCH)
  endforeach()
endif()
if(RANKSCOPE_ENGINE AND ICU_FOUND)  # the transcripts scan texts
  rankscope_tests(cli)
  add_dependencies(test_cli rankscope_program)
endif()

# A real pretrained model, fetched once into the build folder.
if(RANKSCOPE_ENGINE AND ICU_FOUND)
  add_test(NAME fetch_minilm COMMAND ${CMAKE_SOURCE_DIR}/scripts/fetch-minilm.sh ${CMAKE_BINARY_DIR}/minilm)
  set_tests_properties(fetch_minilm PROPERTIES FIXTURES_SETUP minilm TIMEOUT 300 SKIP_RETURN_CODE 77)
  rankscope_tests(pretrained TORCH)
  set_tests_properties(pretrained PROPERTIES FIXTURES_REQUIRED minilm
    ENVIRONMENT "RANKSCOPE_MINILM=${CMAKE_BINARY_DIR}/minilm/package/model")
endif()
