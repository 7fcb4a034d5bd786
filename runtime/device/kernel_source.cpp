#include "runtime/device/kernel_source.hpp"

#include "runtime/device/text/hash.hpp"

namespace greta::device {

std::string KernelSource::content_key(std::string_view compiler,
                                      std::string_view architecture) const {
  Hash hash;
  hash.add(to_string(language)).add(text).add(entry).add(std::uint64_t{required_subgroup_size});
  hash.add(std::uint64_t{argument_bytes}).add(std::uint64_t{options.size()});
  for (const auto& option : options) hash.add(option);
  if (call) hash.add(text_of(*call));
  return hash.add(compiler).add(architecture).hex();
}

}  // namespace greta::device
