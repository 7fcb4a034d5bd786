# Run by cpack on the installed files before it packs them: adds what Debian's policy asks of every package, and
# compresses and moves what has another form or another place there.
function(debian_file_run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Debian's changelog. Its time is SOURCE_DATE_EPOCH, if that is set.
function(debian_file_changelog output)
  string(TIMESTAMP time "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${output} "greta (${CPACK_GRETA_VERSION}) unstable; urgency=medium\n\n"
       "  * Version ${CPACK_GRETA_VERSION}; CHANGELOG.md of the package greta lists the changes.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${time}\n")
  debian_file_run(gzip -9nf ${output})
endfunction()

foreach(pair ${CPACK_GRETA_PACKAGES})
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 component)
  list(GET pair 1 package)
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr)
  if(NOT IS_DIRECTORY ${usr})
    message(FATAL_ERROR "${usr}: cpack installed no component ${component}")
  endif()
  set(doc ${usr}/share/doc/${package})
  file(MAKE_DIRECTORY ${doc})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/copyright ${doc}/copyright COPYONLY)
  debian_file_changelog(${doc}/changelog)

  if(package STREQUAL greta)
    configure_file(${CPACK_GRETA_SOURCE}/CHANGELOG.md ${doc}/CHANGELOG.md COPYONLY)
    debian_file_run(gzip -9nf ${doc}/CHANGELOG.md)
  endif()
  file(GLOB pages ${usr}/share/man/man*/*.?)
  file(GLOB static ${usr}/lib/*.a)
  if(pages)
    debian_file_run(gzip -9nf ${pages})
  endif()
  if(static)
    debian_file_run(strip --strip-debug --remove-section=.comment ${static})
  endif()
  if(EXISTS ${usr}/share/zsh/site-functions)
    file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)
  endif()
  # A file that cpack made below a restrictive umask is not readable for others.
  debian_file_run(chmod -R u=rwX,go=rX ${usr})
endforeach()
