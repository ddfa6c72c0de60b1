# How a room, the program, tests, fuzz targets and benchmarks are built. Sources are found by name, so adding a file needs no edit here.

add_library(octet_options INTERFACE)
target_compile_options(octet_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer)
if(OCTET_WERROR)
  target_compile_options(octet_options INTERFACE -Werror)
endif()
if(OCTET_SANITIZE)
  target_compile_options(octet_options INTERFACE -fsanitize=${OCTET_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(octet_options INTERFACE -fsanitize=${OCTET_SANITIZE})
endif()
if(OCTET_FUZZ)
  target_compile_options(octet_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_include_directories(octet_options INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(octet_options INTERFACE OCTET_VERSION="${PROJECT_VERSION}")

# Sources of a room: *_avx2.cc and *_avx512.cc on x86-64 alone, *_neon.cc on arm64 alone. Each is compiled for its instruction set, whatever this
# machine has, and reached only through the run-time choice in ops/cpu.
function(octet_room_sources out name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/octet/${name}/*.cc)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(FILTER sources EXCLUDE REGEX "_avx(2|512)\\.cc$")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    list(FILTER sources EXCLUDE REGEX "_neon\\.cc$")
  endif()
  foreach(source ${sources})
    if(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-mbmi2")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-mfma;-mf16c;-mbmi2")
    endif()
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# octet_room(NAME [ROOMS room...] [LINK target...]): src/octet/NAME as a library. Rooms are object libraries, so that self-registering files are linked.
function(octet_room name)
  cmake_parse_arguments(ROOM "" "" "ROOMS;LINK" ${ARGN})
  octet_room_sources(sources ${name})
  if(NOT sources)
    add_library(octet_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(octet_${name} OBJECT ${sources})
    set(scope PUBLIC)
  endif()
  target_link_libraries(octet_${name} ${scope} octet_options ${ROOM_LINK})
  foreach(room ${ROOM_ROOMS})
    target_link_libraries(octet_${name} ${scope} octet_${room})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY OCTET_ROOMS ${name})
endfunction()

# The chat page of the server, one text made of the files in src/octet/server/page.
function(octet_chat_page)
  set(folder ${PROJECT_SOURCE_DIR}/src/octet/server/page)
  set(parts index.html style.css markdown.js chat.js text.cc.in)
  list(TRANSFORM parts PREPEND ${folder}/)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${parts})
  file(READ ${folder}/index.html OCTET_PAGE)
  file(READ ${folder}/style.css style)
  file(READ ${folder}/markdown.js markdown)
  file(READ ${folder}/chat.js chat)
  string(REPLACE "@STYLE@" "\n${style}" OCTET_PAGE "${OCTET_PAGE}")
  string(REPLACE "@SCRIPT@" "\n${markdown}\n${chat}" OCTET_PAGE "${OCTET_PAGE}")
  configure_file(${folder}/text.cc.in ${PROJECT_BINARY_DIR}/generated/chat_page_text.cc @ONLY)
  target_sources(octet_server PRIVATE ${PROJECT_BINARY_DIR}/generated/chat_page_text.cc)
endfunction()

# The page of a benchmark's report: its style, and its script behind Chart.js of the distribution (libjs-chart.js), with
# the licence that asks to stand in every copy.
function(octet_report_page)
  set(folder ${PROJECT_SOURCE_DIR}/src/octet/bench/page)
  find_file(OCTET_CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED
    DOC "Chart.js 3.9, minified: package libjs-chart.js")
  find_file(OCTET_CHART_LICENCE copyright PATHS /usr/share/doc/libjs-chart.js NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED
    DOC "Licence of Chart.js")
  set(parts ${folder}/style.css ${folder}/report.js ${folder}/text.cc.in ${OCTET_CHART_JS} ${OCTET_CHART_LICENCE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${parts})
  file(READ ${folder}/style.css OCTET_STYLE)
  file(READ ${folder}/report.js report)
  file(READ ${OCTET_CHART_JS} chart)
  file(READ ${OCTET_CHART_LICENCE} licence)
  string(REPLACE "*/" "* /" licence "${licence}")
  set(OCTET_SCRIPT "/*!\n${licence}*/\n${chart}\n${report}")
  configure_file(${folder}/text.cc.in ${PROJECT_BINARY_DIR}/generated/report_page_text.cc @ONLY)
  target_sources(octet_bench PRIVATE ${PROJECT_BINARY_DIR}/generated/report_page_text.cc)
endfunction()

# Links every room into a target: objects of object libraries do not travel through other libraries.
function(octet_link_rooms target)
  get_property(rooms GLOBAL PROPERTY OCTET_ROOMS)
  foreach(room ${rooms})
    target_link_libraries(${target} PRIVATE octet_${room})
  endforeach()
endfunction()

# octet_program([LINK target...]): apps/octet, with every room.
function(octet_program)
  cmake_parse_arguments(PROGRAM "" "" "LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/octet/*.cc)
  add_executable(octet ${sources})
  octet_link_rooms(octet)
  target_link_libraries(octet PRIVATE ${PROGRAM_LINK})
  target_include_directories(octet PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(octet PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS octet RUNTIME DESTINATION bin)
endfunction()

# tests/support, for test programs and benchmarks.
function(octet_test_support)
  file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cc)
  add_library(octet_test_support OBJECT ${support})
  octet_link_rooms(octet_test_support)
  target_link_libraries(octet_test_support PUBLIC GTest::gtest)
  target_include_directories(octet_test_support PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_definitions(octet_test_support PUBLIC OCTET_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/golden"
    OCTET_PROGRAM="${PROJECT_BINARY_DIR}/octet" OCTET_PYTHON="${PROJECT_SOURCE_DIR}/.venv/bin/python3"
    OCTET_BUILD_TYPE="${CMAKE_BUILD_TYPE}")
endfunction()

# One test program per folder of tests/ that holds *_test.cc.
function(octet_tests)
  file(GLOB folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*)
  include(GoogleTest)
  foreach(folder ${folders})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*_test.cc)
    if(NOT sources)
      continue()
    endif()
    get_filename_component(name ${folder} NAME)
    add_executable(octet_${name}_test ${sources})
    octet_link_rooms(octet_${name}_test)
    target_link_libraries(octet_${name}_test PRIVATE octet_test_support GTest::gtest_main GTest::gmock)
    add_dependencies(octet_${name}_test octet)
    add_test(NAME ${name} COMMAND octet_${name}_test WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endforeach()
  # tools/setup.sh test makes the environment with the clients.
  foreach(page chat report)
    add_test(NAME ${page}_page
      COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python3 tests/e2e/${page}_page_test.py $<TARGET_FILE:octet>
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endforeach()
  add_test(NAME benchmarks COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python3 tests/benchmarks/peers_test.py
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  foreach(client openai anthropic langchain)
    add_test(NAME e2e_${client}
      COMMAND ${PROJECT_SOURCE_DIR}/.venv/bin/python3 tests/e2e/${client}_client_test.py $<TARGET_FILE:octet>
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  endforeach()
endfunction()

# fuzz/NAME_fuzz.cc becomes a libFuzzer program; its seed corpus is fuzz/corpus/NAME.
function(octet_fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    octet_link_rooms(${name})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  endforeach()
endfunction()

function(octet_benchmarks)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/benchmarks/*_bench.cc)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    octet_link_rooms(${name})
    target_link_libraries(${name} PRIVATE octet_test_support benchmark::benchmark)
    add_dependencies(${name} octet)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/benchmarks)
  endforeach()
endfunction()
