# Tests that take long are in one of 62 parts, which have the labels part0 to part9, parta to partz and partA to partZ.
# scripts/test.sh runs one of them, chosen by the commit (docs/decisions/0037-a-commit-runs-a-part-of-the-tests.md). Read by CMake and by ctest.
set(GRETA_PARTS 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n o p q r s t u v w x y z
    A B C D E F G H I J K L M N O P Q R S T U V W X Y Z)

# greta_part(VARIABLE NAME): the part of the test of this name, whatever other tests there are.
function(greta_part variable name)
  string(MD5 hash "${name}")
  string(SUBSTRING ${hash} 0 4 hash)
  list(LENGTH GRETA_PARTS count)
  math(EXPR number "0x${hash} % ${count}")
  list(GET GRETA_PARTS ${number} part)
  set(${variable} ${part} PARENT_SCOPE)
endfunction()

# greta_parted(NAMES…): scripts/test.sh runs these entries of add_test() in their parts only. They are whole suites, of which
# some take minutes. Of 190,000 numbers before their names, this one had parts whose times differed least.
function(greta_parted)
  foreach(name ${ARGN})
    greta_part(part "71336${name}")
    set_tests_properties(${name} PROPERTIES LABELS part${part})
  endforeach()
endfunction()
