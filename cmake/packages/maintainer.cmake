# Read by cpack before it makes a package: who makes it is its maintainer, and no default could be right. The variables
# are those of Debian's own tools.
if(CPACK_GENERATOR STREQUAL "DEB")
  if(NOT CPACK_PACKAGE_CONTACT)
    set(CPACK_PACKAGE_CONTACT "$ENV{DEBEMAIL}")
    if(NOT CPACK_PACKAGE_CONTACT MATCHES "<")
      set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
    endif()
  endif()
  if(NOT CPACK_PACKAGE_CONTACT MATCHES "^[^<>, ][^<>,]* <[^<>@ ]+@[^<>@ ]+[.][^<>@ ]+>$")
    message(FATAL_ERROR "Packages need a maintainer, \"NAME <ADDRESS>\", not \"${CPACK_PACKAGE_CONTACT}\": "
            "set DEBFULLNAME and DEBEMAIL, or -DGRETA_PACKAGE_CONTACT=… for cmake.")
  endif()
endif()
