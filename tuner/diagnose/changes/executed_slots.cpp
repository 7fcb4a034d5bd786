#include "tuner/diagnose/changes/executed_slots.hpp"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <set>

#include "tuner/compile/run_case.hpp"
#include "tuner/diagnose/changes/shared_file.hpp"
#include "tuner/diagnose/changes/trying_process.hpp"

namespace greta::tuner {
namespace {

/// Returns the lines of a source that a compiler's messages call errors.
std::set<std::ptrdiff_t> error_lines(const std::string& log) {
  static const std::regex error(":(\\d{1,7}):\\d+: (fatal )?error");
  std::set<std::ptrdiff_t> lines;
  for (auto at = std::sregex_iterator(log.begin(), log.end(), error); at != std::sregex_iterator();
       ++at)
    lines.insert(std::stol((*at)[1]));
  return lines;
}

/// Compiles a kernel with marks of all slots but those at which it does not compile. The latter
/// count as executed. Returns nothing if no such kernel compiles.
std::optional<std::vector<std::byte>> built_with_marks(const KernelCase& run,
                                                       const KernelSource& source,
                                                       const std::vector<ChangeSlot>& slots,
                                                       char* marks) {
  constexpr int most_passes = 6;
  const DeviceInfo device = device_for_changes(run).value();
  const auto compiler = create_probed_target(device, OpenOptions{}).value();
  const auto line_at = [&](std::size_t at) {
    return 1 + std::count(source.text.begin(),
                          source.text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  };
  std::vector<char> without(slots.size(), 0);
  for (std::size_t i = 0; i < slots.size(); ++i) {  // errors in macros are where these are used
    if (slots[i].kind == ChangeSlot::Kind::macro) without[i] = marks[i] = 1;
  }
  for (int pass = 0; pass < most_passes; ++pass) {
    KernelSource marked = source;
    marked.text = text_with_marks(source, slots, without);
    auto compiled = compiler->compile(marked);
    if (compiled) return std::move(compiled->code_object);
    const auto lines = error_lines(compiled.failure().log);
    if (lines.empty()) break;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (lines.contains(line_at(slots[i].start)) || lines.contains(line_at(slots[i].end)))
        without[i] = marks[i] = 1;
    }
  }
  return std::nullopt;
}

/// What the process does.
void mark(const FailedCase& failed, const BuiltCase& built, std::size_t kernel,
          const KernelSource& source, const std::vector<ChangeSlot>& slots, char* marks) {
  constexpr std::chrono::seconds most_time_of_run{20};
  KernelCase run = failed.kernel;
  auto code = built_with_marks(run, source, slots, marks);
  if (!code || !choose_marks(*code, marks)) return;
  run.architecture = built.architecture;
  run.code_objects = built.unchanged;
  run.code_objects[kernel] = *std::move(code);
  const auto device = open_device(built.device, OpenOptions{}).value();
  marks[slots.size()] = 1;
  static_cast<void>(run_case(*device, run, most_time_of_run));
}

/// Returns which slots of a kernel's source are executed, found out by a process of its own. All,
/// if that is not known in time.
std::vector<char> executed_slots_of(const FailedCase& failed, const BuiltCase& built,
                                    std::size_t kernel, const KernelSource& source,
                                    const std::vector<ChangeSlot>& slots,
                                    std::chrono::steady_clock::time_point end) {
  const std::size_t count = slots.size();
  const SharedMemory marks(count + 1);
  TryingProcess process(0, 1);
  const bool started = process.start([&](std::size_t, std::size_t, int) {
    try {
      mark(failed, built, kernel, source, slots, marks.data());
    } catch (const std::exception&) {  // what is not known counts as executed
    }
  });
  pollfd wait{process.descriptor(), POLLIN, 0};
  while (started && std::chrono::steady_clock::now() < end && poll(&wait, 1, look_ms) <= 0) {
  }
  process.stop();
  const bool ran = marks.data()[count] != 0 &&
                   std::any_of(marks.data(), marks.data() + count, [](char c) { return c != 0; });
  if (!ran) return std::vector<char>(count, 1);
  return {marks.data(), marks.data() + count};
}

}  // namespace

std::size_t unexecuted_slots(const FailedCase& failed, const BuiltCase& built, std::size_t kernel,
                             const std::string& text, std::chrono::steady_clock::time_point end) {
  if (failed.kernel.language != Language::hip) return 0;
  KernelSource source = read_kept_source(failed.sources[kernel], failed.kernel.language).value();
  source.text = text;
  const auto slots = slots_of(source.text, source.entry);
  const auto executed = executed_slots_of(failed, built, kernel, source, slots, end);
  return static_cast<std::size_t>(std::count(executed.begin(), executed.end(), char{0}));
}

std::vector<std::vector<char>> executed_slots(const FailedCase& failed, const BuiltCase& built,
                                              const std::vector<std::vector<ChangeSlot>>& slots,
                                              std::chrono::steady_clock::time_point end) {
  std::vector<std::vector<char>> executed;
  for (const auto& all : slots) executed.emplace_back(all.size(), 1);
  if (failed.kernel.language != Language::hip) return executed;
  for (std::size_t kernel = 0; kernel < slots.size() && std::chrono::steady_clock::now() < end;
       ++kernel) {
    const auto source = read_kept_source(failed.sources[kernel], failed.kernel.language).value();
    executed[kernel] = executed_slots_of(failed, built, kernel, source, slots[kernel], end);
  }
  return executed;
}

}  // namespace greta::tuner
