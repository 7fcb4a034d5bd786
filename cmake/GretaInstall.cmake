# What `cmake --install` puts in place besides the tools: the libraries of greta::runtime, greta::tuner and
# greta::tuner_model with their
# headers below include/greta, and the CMake package.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# greta::runtime: what a production user links.
add_library(greta_runtime INTERFACE)
add_library(greta::runtime ALIAS greta_runtime)
set_target_properties(greta_runtime PROPERTIES EXPORT_NAME runtime)
target_link_libraries(greta_runtime INTERFACE greta::pipeline)

install(TARGETS greta_device greta_kernels greta_db greta_pipeline greta_runtime greta_tuner
        greta_tuner_model EXPORT greta ARCHIVE)
# libgreta.so, libgreta-tuner.so and their headers, for C; libgreta-hip-host.so, which stands in for libamdhip64.
install(TARGETS greta_c greta_tuner_c greta_hip_host EXPORT greta
        LIBRARY COMPONENT library NAMELINK_COMPONENT development)
install(FILES runtime/pipeline/c/greta.h tuner/c/greta_tune.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Public headers lie directly in these folders; deeper ones are the implementation's.
foreach(folder runtime/device runtime/device/compile runtime/device/hardware runtime/device/system
        runtime/device/text kernels kernels/described kernels/model kernels/launch kernels/sampling db
        db/lookup runtime/pipeline/compute runtime/pipeline/models runtime/pipeline/llama
        tuner/evaluate tuner/measure tuner/model tuner/search tuner/session tuner/tuning)
  file(GLOB headers CONFIGURE_DEPENDS ${folder}/*.hpp)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/greta/${folder})
endforeach()
# The Python package, where Debian's interpreter finds it if the prefix is /usr.
install(DIRECTORY runtime/python/greta DESTINATION lib/python3/dist-packages COMPONENT python
        FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE)
# share/greta/tuned, the databases that GRETA ships, is among what tuner/cli installs.
install(DIRECTORY presets DESTINATION ${CMAKE_INSTALL_DATADIR}/greta COMPONENT tools FILES_MATCHING PATTERN *.json)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/greta)
install(EXPORT greta NAMESPACE greta:: DESTINATION ${package_dir} FILE greta-targets.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/greta-config.cmake.in
  ${PROJECT_BINARY_DIR}/greta-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/greta-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/greta-config.cmake
        ${PROJECT_BINARY_DIR}/greta-config-version.cmake DESTINATION ${package_dir})
