# cmake -D OUTPUT=f.cpp -D NAMESPACE=ns -D FUNCTION=name -D HEADER=f.hpp -D ROOT=dir -D "FILES=a;b" -P embed.cmake
# Writes a C++ file that defines NAMESPACE::FUNCTION(), which HEADER declares: each file's path below ROOT
# and its text.
set(entries "")
foreach(file IN LISTS FILES)
  file(READ "${ROOT}/${file}" text)
  # Raw string literals are limited to 64 KiB by some compilers; pieces are joined by adjacency.
  string(LENGTH "${text}" length)
  set(position 0)
  set(pieces "")
  while(position LESS length)
    string(SUBSTRING "${text}" ${position} 8000 piece)
    string(APPEND pieces "R\"__GRETA__(${piece})__GRETA__\"\n")
    math(EXPR position "${position} + 8000")
  endwhile()
  if(NOT pieces)
    set(pieces "\"\"\n")
  endif()
  string(APPEND entries "    {\"${file}\",\n${pieces}},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Written by cmake/embed.cmake.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

const std::vector<EmbeddedFile>& ${FUNCTION}() {
  static const std::vector<EmbeddedFile> files{
${entries}  };
  return files;
}

}  // namespace ${NAMESPACE}
")
