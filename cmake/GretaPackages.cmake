# What `cpack -G DEB` makes of an installation: a package for each component. docs/packages.md describes them.
set(GRETA_PACKAGE_CONTACT "" CACHE STRING
    "Maintainer of the packages that cpack makes: NAME <ADDRESS>; by default from DEBFULLNAME and DEBEMAIL")

set(CPACK_PACKAGE_NAME greta)
set(CPACK_PACKAGE_CONTACT "${GRETA_PACKAGE_CONTACT}")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/packages/maintainer.cmake)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each component's description begins with its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/debian_files.cmake)
set(CPACK_COMPONENTS_ALL tools library development python)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# A library's package has the number of its binary interface in its name, so that two can be installed.
get_target_property(interface greta_c SOVERSION)
set(library libgreta${interface})
set(same_version "(= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME greta)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
# Vulkan's loader is opened at run time, which dpkg-shlibdeps does not see.
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library} ${same_version}, libvulkan1")
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS mesa-vulkan-drivers)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "g++")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Autotuner and benchmarks for GPU kernels
greta-tune finds the fastest configuration of a kernel with correct results for
an operation, a shape and a device, and stores it in a database. greta-db
manages databases, greta-bench detects regressions, and greta-run runs a Llama.
Kernels run on AMD GPUs, on NVIDIA GPUs, and on all devices with Vulkan.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libvulkan1)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/packages/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Tuned GPU kernels for applications
The runtime library of GRETA runs operations such as GEMM and attention by the
configurations of a database. This package contains the library, the tuner as
a library, the process that compiles kernels, and the databases that GRETA
ships.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libgreta-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
# What greta-config.cmake finds, since the static libraries link it.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} ${same_version}, libfmt-dev, nlohmann-json3-dev, \
libsqlitecpp-dev, libsqlite3-dev, spirv-tools, glslang-dev, glslang-tools, zlib1g-dev, libpcre2-dev, libutf8proc-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Tuned GPU kernels for applications (development files)
Headers for C and C++, static libraries and the CMake package of GRETA's
runtime and of its tuner.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-greta)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.11), ${library} ${same_version}")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS greta)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS python3-numpy)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/cmake/packages/python/postinst ${PROJECT_SOURCE_DIR}/cmake/packages/python/prerm)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Tuned GPU kernels for Python
The package greta runs GRETA's operations on arrays of NumPy, PyTorch and other
libraries, in place.")

# For debian_files.cmake.
set(CPACK_GRETA_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_GRETA_VERSION ${PROJECT_VERSION})
set(CPACK_GRETA_PACKAGES "tools:greta;library:${library};development:libgreta-dev;python:python3-greta")
include(CPack)
