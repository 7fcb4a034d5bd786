# cmake -D SOURCE=dir -D OUTPUT=file -D GIT=git -D REVISION=text -P revision.cmake
# Writes a source with revision(): REVISION, else the commit of SOURCE, with "-dirty" after it if files differ from the
# commit; empty outside a repository. The file is only touched when it changes, so that little is built again.
if(NOT REVISION AND GIT)
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --show-toplevel
                  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${SOURCE} here)
  if(top STREQUAL here)  # an unpacked archive may lie in the repository of another project
    execute_process(COMMAND ${GIT} --no-optional-locks -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude *
                    OUTPUT_VARIABLE REVISION OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
string(REGEX REPLACE "[^0-9A-Za-z.+~_-]" "" REVISION "${REVISION}")
set(text "#include \"tuner/cli/program/revision.hpp\"

namespace greta::tuner::cli {

std::string_view revision() {
  return \"${REVISION}\";
}

}  // namespace greta::tuner::cli
")
set(known "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} known)
endif()
if(NOT known STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
