# cmake -D BUILD=build-tree -D SOURCE=this-folder -D WORK=scratch -D GENERATOR=… -D FLAGS=… -P run.cmake
# Installs GRETA into an empty prefix, then configures, builds and runs the consumer against it.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${WORK}/prefix/bin/greta-tune --help)
foreach(file man/man1/greta-tune.1 bash-completion/completions/greta-db)
  if(NOT EXISTS ${WORK}/prefix/share/${file})
    message(FATAL_ERROR "share/${file} is not installed")
  endif()
endforeach()
run(${WORK}/prefix/bin/greta-bench --version)
run(${WORK}/prefix/libexec/greta/greta-compile-helper hiprtc --version)

# Installed headers include installed headers only.
set(include ${WORK}/prefix/include/greta)
file(GLOB_RECURSE headers ${include}/*.hpp)
foreach(header ${headers})
  file(STRINGS ${header} lines REGEX "^#include \"")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    if(NOT EXISTS ${include}/${included})
      message(FATAL_ERROR "${header} includes ${included}, which is not installed")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS=${FLAGS}" "-DCMAKE_C_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
# Under AddressSanitizer, leaks are for GRETA's own programs to find: drivers have some.
set(ENV{ASAN_OPTIONS} detect_leaks=0)
run(${WORK}/build/consumer ${WORK}/consumer.db)
run(${WORK}/build/consumer_tuner ${WORK})
run(${WORK}/build/consumer_c vulkan:0)

# The Python package finds its libraries and greta-tune in the prefix.
find_program(PYTHON python3 REQUIRED)
file(WRITE ${WORK}/installed.py "
import pathlib, sys, greta
assert str(pathlib.Path(greta.__file__)).startswith('${WORK}/prefix/lib'), greta.__file__
print('greta', greta.version(), 'in Python')
result = greta.tune('gemm', m=64, n=48, k=40, budget=2, device='hip-host:0', db='${WORK}/python.db',
                    cache='${WORK}/cache', flush_mib=1, lock=False)
assert result.winner is not None and result.trials, result
with greta.Runtime('hip-host:0', db=result.database) as runtime:
    one = runtime.empty((64, 48), staging=True)
")
if(NOT FLAGS)  # an interpreter without sanitizers can't load libraries with them
  run(${CMAKE_COMMAND} -E env PYTHONPATH=${WORK}/prefix/lib/python3/dist-packages ${PYTHON} -B ${WORK}/installed.py)
endif()

# What the installation ships is found by its tools, by libgreta.so and by programs of other prefixes; a database of
# this machine's device is added to it.
set(tuned ${WORK}/prefix/share/greta/tuned)
foreach(file sm_90/nvidia-h200.db lavapipe/lavapipe.db)
  if(NOT EXISTS ${tuned}/${file})
    message(FATAL_ERROR "${tuned}/${file} is not installed")
  endif()
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=GRETA_SHIPPED HOME=${WORK} ${WORK}/prefix/bin/greta-db info
                OUTPUT_VARIABLE info COMMAND_ERROR_IS_FATAL ANY)
if(NOT info MATCHES "${tuned}/sm_90/nvidia-h200.db +hip NVIDIA H200, vulkan NVIDIA H200")
  message(FATAL_ERROR "greta-db info does not list what is installed: ${info}")
endif()
run(${WORK}/prefix/bin/greta-db export --ship --db ${WORK}/tuned.db --out ${tuned}/lavapipe/consumer.db)
run(${WORK}/build/consumer ${WORK}/consumer.db "gemm dtype=f32 out=f32 m=64 n=48 k=80")
run(${WORK}/build/consumer_c vulkan:0 ${WORK}/tuned.db)
