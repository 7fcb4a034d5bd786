#include "tuner/diagnose/responses.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

using kernels::Role;
using kernels::TensorSpec;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t longest_axis = 128;
constexpr std::size_t most_response_bytes = std::size_t{256} << 20;  // of all responses

/// Returns the impulses of all operands that have few rows or columns, axis by axis.
std::vector<Impulse> impulses_of(const std::vector<TensorSpec>& read) {
  std::vector<Impulse> all;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i].role != Role::input || !is_floating(read[i].dtype)) continue;
    for (const bool rows : {true, false}) {
      const std::int64_t extent = rows ? read[i].rows : read[i].cols;
      if (extent < 2 || extent > longest_axis) continue;
      for (std::int64_t index = Impulse::none; index < extent; ++index)
        all.push_back({.operand = i, .rows = rows, .index = index});
    }
  }
  return all;
}

/// What the process does: runs the impulses, and puts the outputs of each into a file.
void respond(const Catalog& catalog, const FailedCase& failed, const std::vector<TensorSpec>& specs,
             const std::vector<Impulse>& impulses, const SharedFile& file, int descriptor) {
  ChangeTrials trials(catalog, failed);
  std::vector<std::size_t> buffers;  // of the operands that kernels read
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::output) buffers.push_back(i);
  }
  const auto outputs = static_cast<std::size_t>(std::count_if(
      specs.begin(), specs.end(), [](const TensorSpec& spec) { return spec.role != Role::input; }));
  for (std::size_t i = 0; i < impulses.size(); ++i) {
    std::vector<std::vector<std::byte>> operands;
    for (std::size_t b = 0; b < specs.size(); ++b)
      operands.push_back(failed.kernel.buffers.at(b).data);
    const std::size_t at = buffers[impulses[i].operand];
    operands[at] = impulses[i].applied_to({specs[at], operands[at]}).data;
    const auto contents = trials.contents_with(operands);
    if (!contents) return;
    // A workspace that is zeroed follows the operands.
    for (std::size_t b = 0; b < outputs; ++b)
      file.put(contents->at(b).data(), contents->at(b).size());
    const Report done{static_cast<std::uint32_t>(i), ChangeOutcome::untried};
    if (::write(descriptor, &done, sizeof done) != sizeof done) return;
  }
}

}  // namespace

HostTensor Impulse::applied_to(const HostTensor& operand_before) const {
  HostTensor made = operand_before;
  const TensorSpec& spec = made.spec;
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    for (std::int64_t col = 0; col < spec.cols; ++col) {
      const bool one = index == all || (rows ? row : col) == index;
      store_element(spec.dtype, made.data.data(),
                    static_cast<std::size_t>(spec.row_start(row) + col), one ? 1 : 0);
    }
  }
  return made;
}

std::vector<Response> measured_responses(const Catalog& catalog, const FailedCase& failed,
                                         double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(seconds));
  const kernels::Problem problem = catalog.read(failed.kernel.problem).value();
  const auto specs = catalog.at(problem.op).tensors(problem);
  std::vector<TensorSpec> read, written;
  for (const TensorSpec& spec : specs) {
    if (spec.role != Role::output) read.push_back(spec);
    if (spec.role != Role::input) written.push_back(spec);
  }
  const auto impulses = impulses_of(read);
  SharedFile file;
  TryingProcess process(0, 1);
  const bool started = process.start([&](std::size_t, std::size_t, int descriptor) {
    try {
      respond(catalog, failed, specs, impulses, file, descriptor);
    } catch (const std::exception&) {  // there are fewer responses
    }
  });
  std::size_t count = 0, bytes = 0;
  for (const TensorSpec& spec : written) bytes += spec.bytes();
  const std::size_t most =
      std::min(impulses.size(), most_response_bytes / std::max<std::size_t>(bytes, 1));
  while (started && count < most && Clock::now() < end) {
    pollfd wait{process.descriptor(), POLLIN, 0};
    if (poll(&wait, 1, look_ms) <= 0) continue;
    if (!process.read_report()) break;
    ++count;
  }
  process.stop();
  std::vector<Response> responses;
  for (std::size_t i = 0; i < count; ++i) {
    Response& made = responses.emplace_back(Response{impulses[i], {}});
    for (const TensorSpec& spec : written)
      made.outputs.push_back(packed(HostTensor{spec, file.get<std::byte>()}));
  }
  return responses;
}

}  // namespace greta::tuner
