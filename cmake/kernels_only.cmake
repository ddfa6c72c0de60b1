# Rooms base to ops with their tests, for a machine whose libraries are not installed here (preset arm64): of what these rooms link only headers are
# used, GoogleTest is built from its source, and what cannot do without OpenSSL or yaml-cpp is left out. Programs are linked statically, so that an
# emulator runs them without the files of a system.
find_package(Threads REQUIRED)
enable_testing()

set(googletest /usr/src/googletest)  # of Debian's libgtest-dev
add_library(octet_googletest STATIC EXCLUDE_FROM_ALL ${googletest}/googletest/src/gtest-all.cc ${googletest}/googletest/src/gtest_main.cc
  ${googletest}/googlemock/src/gmock-all.cc)
target_include_directories(octet_googletest PRIVATE ${googletest}/googletest ${googletest}/googlemock)
target_link_libraries(octet_googletest PUBLIC Threads::Threads)

# Archives, not objects as elsewhere: a program is linked with what it refers to. One is built without those above it.
set(linked)
foreach(room base topology tensor formats ops)
  octet_room_sources(sources ${room})
  list(FILTER sources EXCLUDE REGEX "/base/sha256\\.cc$")
  add_library(octet_${room} STATIC ${sources})
  target_link_libraries(octet_${room} PUBLIC octet_options ${linked} Threads::Threads)
  target_compile_definitions(octet_${room} PUBLIC FMT_HEADER_ONLY SPDLOG_FMT_EXTERNAL XXH_INLINE_ALL)
  set_target_properties(octet_${room} PROPERTIES OPTIMIZE_DEPENDENCIES ON)
  set(linked octet_${room})
endforeach()

# qemu-user answers madvise() without doing it, so a read past the end of a mapped file would not fail.
set(base_options --gtest_filter=-File.ReadsThatFailNameTheFile)
foreach(room base tensor ops)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/*_test.cc)
  list(FILTER sources EXCLUDE REGEX "/(flags|block_grids)_test\\.cc$")
  add_executable(octet_${room}_test ${sources} tests/support/allocation_count.cc)
  target_link_libraries(octet_${room}_test PRIVATE octet_ops octet_googletest)
  target_include_directories(octet_${room}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(octet_${room}_test PRIVATE OCTET_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden")
  add_test(NAME ${room} COMMAND octet_${room}_test ${${room}_options} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endforeach()
