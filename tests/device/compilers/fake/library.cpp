// Replaces hiprtc (-D PREFIX=hiprtc -D CODE=Code) or NVRTC (-D PREFIX=nvrtc -D CODE=CUBIN) and
// follows instructions in the source. -D MAJOR=N sets its version; -D WITHOUT_LOG omits a function.
// It supports the architecture of -D KNOWN="option".

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define FUNCTION(name) JOIN(PREFIX, name)

namespace {

struct Program {
  std::string source, log, code, kernels;
};

bool asked_to(const Program& program, const char* what) {
  return program.source.find(what) != std::string::npos;
}

int give(const std::string& from, char* to) {
  std::memcpy(to, from.data(), from.size());
  return 0;
}

}  // namespace

extern "C" {

const char* FUNCTION(GetErrorString)(int error) {
  return error == 6 ? "FAKE_ERROR_COMPILATION" : "FAKE_ERROR";
}

int FUNCTION(Version)(int* major, int* minor) {
  *major = MAJOR;
  *minor = 1;
  return 0;
}

int FUNCTION(CreateProgram)(Program** program, const char* source, const char*, int,
                            const char* const*, const char* const*) {
  *program = new Program{source, {}, {}, {}};
  return 0;
}

int FUNCTION(AddNameExpression)(Program* program, const char* expression) {
  program->kernels += std::string(" instantiates ") + expression;
  return 0;
}

int FUNCTION(CompileProgram)(Program* program, int count, const char* const* options) {
  std::puts("noise on standard output");
  bool known = false;
  std::string words;
  for (int i = 0; i < count; ++i) {
    known = known || std::strcmp(options[i], KNOWN) == 0;
    words += std::string(" ") + options[i];
  }
  if (!known) {
    program->log = "error: invalid architecture";
    return 5;
  }
  if (asked_to(*program, "please abort")) std::abort();
  while (asked_to(*program, "please hang")) pause();
  if (asked_to(*program, "please refuse")) {
    program->log = "a note\nkernel(7): error: as you wish\nand more\n";
    return 6;
  }
  if (asked_to(*program, "please warn")) program->log = "kernel(3): warning: beware\n";
  if (!asked_to(*program, "please give nothing"))
    program->code =
        "\x7f"
        "ELF" +
        words + program->kernels;
  return 0;
}

int FUNCTION(GetProgramLogSize)(Program* program, std::size_t* size) {
  *size = program->log.size() + 1;  // includes the final zero, like the real libraries
  return 0;
}

#ifndef WITHOUT_LOG
int FUNCTION(GetProgramLog)(Program* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
#endif

int JOIN(JOIN(FUNCTION(Get), CODE), Size)(Program* program, std::size_t* size) {
  *size = program->code.size();
  return 0;
}

int JOIN(FUNCTION(Get), CODE)(Program* program, char* code) {
  return give(program->code, code);
}

}  // extern "C"
