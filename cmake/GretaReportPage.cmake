# greta_report_page(): builds the page of greta-report with Node.js and embeds it, with the licences of what is in it,
# as greta::tuner::page_files(). GRETA_REPORT_PAGE: AUTO builds the page where Node.js and its packages can be had, and
# greta-report says what is missing elsewhere; ON fails without them; OFF builds none.

set(GRETA_REPORT_PAGE AUTO CACHE STRING "Build the page of greta-report: AUTO, ON or OFF")
set_property(CACHE GRETA_REPORT_PAGE PROPERTY STRINGS AUTO ON OFF)
find_program(GRETA_NODE node DOC "Node.js, which builds the page of greta-report")
find_program(GRETA_NPM npm DOC "npm, which installs the packages of the page of greta-report")
mark_as_advanced(GRETA_NODE GRETA_NPM)

function(greta_report_page)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/page/web)
  set(work ${PROJECT_BINARY_DIR}/report)
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS ${source}/src/*.ts ${source}/src/*.css)
  list(APPEND inputs ${source}/index.html ${source}/vite.config.js ${source}/tsconfig.json ${source}/package.json
       ${source}/package-lock.json ${source}/.npmrc ${PROJECT_SOURCE_DIR}/cmake/report_page.cmake)
  set(files report.html licences.txt missing.txt)
  set(page ${work}/page)
  list(TRANSFORM files PREPEND ${page}/ OUTPUT_VARIABLE paths)
  add_custom_command(OUTPUT ${paths} DEPENDS ${inputs} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${source} -D WORK=${work} -D NODE=${GRETA_NODE} -D NPM=${GRETA_NPM}
            -D MODE=${GRETA_REPORT_PAGE} -P ${PROJECT_SOURCE_DIR}/cmake/report_page.cmake)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/page_files.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${output} DEPENDS ${paths} ${script} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D OUTPUT=${output} -D NAMESPACE=greta::tuner -D FUNCTION=page_files
            -D HEADER=tuner/page/page.hpp -D ROOT=${page} -D "FILES=${files}" -P ${script})
  target_sources(greta_tuner PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  install(FILES ${page}/licences.txt DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME greta-report-licences.txt)
endfunction()
