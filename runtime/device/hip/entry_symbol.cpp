#include "runtime/device/hip/entry_symbol.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "runtime/device/hip/elf_bytes.hpp"

namespace greta::device::hip {
namespace {

std::string without_spaces(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != ' ') text += c;
  }
  return text;
}

/// Returns "scale<float,4>" for the demangled "void scale<float, 4>(float*, int)".
std::string name_of(std::string_view demangled) {
  int depth = 0;
  std::size_t begin = 0, end = demangled.size();
  for (std::size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth > 0) continue;
    if (c == ' ') begin = i + 1;
    if (c == '(') {
      end = i;
      break;
    }
  }
  return without_spaces(demangled.substr(begin, end - begin));
}

/// The C++ names of functions by their symbols.
std::set<std::pair<std::string, std::string>> functions_of(Bytes file) {
  std::set<std::pair<std::string, std::string>> found;
  const auto elf = read<Elf64_Ehdr>(file, 0);
  if (!elf || !is_whole_elf(file)) return found;
  const auto add = [&](const FoundSymbol& function, std::string_view symbol) {
    if (function.symbol.st_shndx == SHN_UNDEF) return false;
    const std::string name(symbol);
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    found.emplace(name, text ? name_of(text.get()) : name);
    return false;
  };
  find_in_symbols(file, section_headers(file, *elf), STT_FUNC, add);
  return found;
}

}  // namespace

std::string entry_symbol(std::span<const std::byte> code_object, const std::string& entry) {
  const auto functions = functions_of(code_object);
  const std::string wanted = without_spaces(entry);
  const std::string of_template = wanted.substr(0, wanted.find('<'));
  std::string exact, similar;
  std::size_t exact_count = 0, similar_count = 0;
  for (const auto& [symbol, name] : functions) {
    if (symbol == entry) return entry;
    if (name == wanted) {
      exact = symbol;
      ++exact_count;
    }
    if (is_instantiation(name) && name.substr(0, name.find('<')) == of_template) {
      similar = symbol;
      ++similar_count;
    }
  }
  if (exact_count == 1) return exact;
  const bool meant = exact_count == 0 && is_instantiation(entry) && similar_count == 1;
  return meant ? similar : entry;
}

}  // namespace greta::device::hip
