#pragma once

#include <map>
#include <memory>
#include <string>

#include "kernels/described/description.hpp"
#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The contents of the files that a description names, by their names.
using DescribedFiles = std::map<std::string, std::string>;

/// Makes the operation that a description describes: its dimensions, one variant, `described`, with
/// the tunable parameters and constraints, its operands and its launches. Words and truth values of
/// parameters are numbers in configurations: the position in the list of words, 0 and 1.
/// `reference` checks results. Fails with `invalid_argument` if a file is missing.
Result<Operation> make_described(
    const Description& description, const DescribedFiles& files,
    std::function<std::unique_ptr<Reference>(const Problem&, const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed)>
        reference);

}  // namespace greta::kernels
