# greta_layer(NAME [HOT] PUBLIC… PRIVATE…): one layer of the architecture as a static library greta_NAME, alias
# greta::NAME, made of every .cpp file below the calling folder. HOT: optimised in dev, too, as the time of tests
# is spent there.

include(GNUInstallDirs)

# A fast linker where there is one: the tests are thirty programs with the same libraries.
find_program(GRETA_LINKER NAMES ld.mold ld.lld DOC "Linker of a name that -fuse-ld= takes after \"ld.\"")
mark_as_advanced(GRETA_LINKER)
if(GRETA_LINKER AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES -fuse-ld)
  cmake_path(GET GRETA_LINKER EXTENSION LAST_ONLY linker)
  string(SUBSTRING ${linker} 1 -1 linker)
  add_link_options(-fuse-ld=${linker})
endif()

add_library(greta_options INTERFACE)
target_compile_features(greta_options INTERFACE cxx_std_20)
target_compile_options(greta_options INTERFACE
  $<BUILD_INTERFACE:-Wall -Wextra -Wconversion>
  # GCC 13 takes the results of look-ups by name for references to the name; GCC 14 leaves this warning out of -Wall.
  $<BUILD_INTERFACE:$<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>>
  # Clang's -Wconversion has conversions between signed and unsigned integers, too, and in libstdc++ 12 it takes the
  # use that std::stable_sort() makes of a deprecated function for one of the project's.
  $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;-Wno-deprecated-declarations>>
  # In a unit of several sources, what one has in its unnamed namespace is global to those after it. Clang can't tell
  # what shadows that from what shadows a local variable.
  $<BUILD_INTERFACE:$<IF:$<BOOL:${CMAKE_UNITY_BUILD}>,$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>,-Wshadow>>
  $<BUILD_INTERFACE:$<$<BOOL:${GRETA_WARNINGS_AS_ERRORS}>:-Werror>>)
if(GRETA_SANITIZE)
  target_compile_options(greta_options INTERFACE -fsanitize=${GRETA_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(greta_options INTERFACE -fsanitize=${GRETA_SANITIZE})
  set(is_program $<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>)
  target_sources(greta_options INTERFACE
    $<${is_program}:${PROJECT_SOURCE_DIR}/tests/sanitizer.cpp>)
endif()

# Of the product: a source declares nothing that others see but what its header declares.
add_library(greta_product_options INTERFACE)
target_link_libraries(greta_product_options INTERFACE greta_options)
target_compile_options(greta_product_options INTERFACE -Wmissing-declarations)

if(CMAKE_UNITY_BUILD)
  if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
  endif()
  # The compiler may take 4 GB before it looks for memory to use again, which takes a tenth of its time.
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(greta_options INTERFACE
      "$<BUILD_INTERFACE:SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=4000000>")
  endif()
endif()

# greta_hot_sources(SOURCES…): sources of the calling folder that are optimised in dev, too, each compiled by itself.
function(greta_hot_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O2>
    SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# greta_precompile(TARGET HEADERS…): these headers of libraries are parsed once for all sources of the target, or were
# for another target that is compiled with the same options (REUSE_FROM TARGET). Preset single does without, as each
# source includes what it uses; so does a build with ccache, which does not cache such objects by default.
function(greta_precompile target)
  if(NOT CMAKE_UNITY_BUILD OR CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  if(ARGV1 STREQUAL REUSE_FROM)
    target_precompile_headers(${target} ${ARGN})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN} ${GRETA_STANDARD_HEADERS})
  endif()
endfunction()
set(GRETA_STANDARD_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <condition_variable> <cstdint>
    <deque> <filesystem> <fstream> <functional> <future> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span>
    <sstream> <string> <thread> <unordered_map> <unordered_set> <utility> <variant> <vector> <fmt/format.h>
    <fmt/ranges.h>)

# Has the headers that most layers use, precompiled.
file(CONFIGURE OUTPUT headers.cpp CONTENT "")
add_library(greta_headers OBJECT EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
set_target_properties(greta_headers PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_link_libraries(greta_headers PRIVATE greta_product_options nlohmann_json::nlohmann_json ${GRETA_FMT}
                      Threads::Threads)
greta_precompile(greta_headers <nlohmann/json.hpp>)

function(greta_layer name)
  cmake_parse_arguments(arg "HOT" "" "PUBLIC;PRIVATE;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  foreach(pattern ${arg_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  add_library(greta_${name} STATIC ${sources})
  add_library(greta::${name} ALIAS greta_${name})
  set_target_properties(greta_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(greta_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/greta>)
  target_link_libraries(greta_${name} PUBLIC ${arg_PUBLIC}
    PRIVATE $<BUILD_INTERFACE:greta_product_options> ${arg_PRIVATE})
  target_compile_features(greta_${name} PUBLIC cxx_std_20)
  if(arg_HOT)
    # Not headers but optimisation takes the time: larger units would not save much.
    set_target_properties(greta_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
    target_compile_options(greta_${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O2>)
  endif()
endfunction()

# greta_embed(LAYER FUNCTION HEADER ROOT PATTERNS…): builds the files below ROOT that match into a layer, as the list
# that greta::LAYER::FUNCTION() returns and HEADER declares.
function(greta_embed layer function header root)
  set(root ${CMAKE_CURRENT_SOURCE_DIR}/${root})
  list(TRANSFORM ARGN PREPEND ${root}/ OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${root} ${patterns})
  list(TRANSFORM files PREPEND ${root}/ OUTPUT_VARIABLE paths)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D NAMESPACE=greta::${layer} -D FUNCTION=${function} -D HEADER=${header}
            -D ROOT=${root} -D "FILES=${files}" -P ${script}
    DEPENDS ${paths} ${script} VERBATIM)
  target_sources(greta_${layer} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
