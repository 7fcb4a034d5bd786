# Toolchain of preset dev: clang compiles in half of g++'s time. The newest of those that scripts/setup.sh test installs
# is used; without one, or if CC and CXX name others, the system's default compiler.
if(NOT DEFINED ENV{CXX} AND NOT DEFINED ENV{CC})
  foreach(version 22 20)
    find_program(GRETA_CLANG_${version} clang-${version})
    find_program(GRETA_CLANGXX_${version} clang++-${version})
    mark_as_advanced(GRETA_CLANG_${version} GRETA_CLANGXX_${version})
    if(GRETA_CLANG_${version} AND GRETA_CLANGXX_${version})
      set(CMAKE_C_COMPILER ${GRETA_CLANG_${version}})
      set(CMAKE_CXX_COMPILER ${GRETA_CLANGXX_${version}})
      break()
    endif()
  endforeach()
endif()
