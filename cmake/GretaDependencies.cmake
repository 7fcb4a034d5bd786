# Libraries that GRETA links. All come from the distribution's packages: scripts/setup.sh.

if(GRETA_STATIC_DEPS)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_path(GRETA_VULKAN_INCLUDE_DIR vulkan/vulkan.h REQUIRED)
find_path(GRETA_VOLK_INCLUDE_DIR volk.c PATH_SUFFIXES volk Volk REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(benchmark REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
find_package(SPIRV-Tools-opt REQUIRED)
find_package(glslang REQUIRED CONFIG)
# Debian's PCRE2 and utf8proc are built by other means than CMake, and come with no CMake package.
find_path(GRETA_PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(GRETA_PCRE2 pcre2-8 REQUIRED)
find_path(GRETA_UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(GRETA_UTF8PROC utf8proc REQUIRED)

# glslang's exported targets carry different names in its releases 11 to 15. Plain lists of imported
# targets, so that the exported package names them too.
set(GRETA_GLSLANG SPIRV-Tools-opt)
foreach(name glslang-default-resource-limits glslang SPIRV)
  if(TARGET glslang::${name})
    list(PREPEND GRETA_GLSLANG glslang::${name})
  elseif(TARGET ${name})
    list(PREPEND GRETA_GLSLANG ${name})
  else()
    message(FATAL_ERROR "glslang ${glslang_VERSION} has no target ${name}")
  endif()
endforeach()

# Debian's libfmt-dev holds a shared library only.
get_target_property(fmt_type fmt::fmt TYPE)
if(GRETA_STATIC_DEPS AND NOT fmt_type STREQUAL STATIC_LIBRARY)
  set(GRETA_FMT fmt::fmt-header-only)
else()
  set(GRETA_FMT fmt::fmt)
endif()

if(GRETA_TESTS)
  find_package(GTest REQUIRED)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  # What was found may be a script that starts the interpreter, as pyenv's: each test would run that, too.
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
                  OUTPUT_VARIABLE GRETA_INTERPRETER OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
