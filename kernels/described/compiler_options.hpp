#pragma once

#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::kernels::described {

/// Whether a description may have this option of a compiler. Others could read or write files, or
/// run programs.
bool is_allowed_option(const std::string& option);
/// "-DNAME=VALUE, -UNAME, …", for messages.
std::string allowed_options();
/// Returns the options in the words of the compiler for a device, without those that it has none
/// for.
std::vector<std::string> options_for(const DeviceInfo& device,
                                     const std::vector<std::string>& options);

}  // namespace greta::kernels::described
