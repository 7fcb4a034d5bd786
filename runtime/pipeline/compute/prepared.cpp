#include "runtime/pipeline/compute/prepared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_set>
#include <utility>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::runtime {
namespace {

/// Returns a string that identifies a kernel by everything that affects its binary or its launches.
std::string identity(const KernelSource& source) {
  return fmt::format("{} {} {}x{}x{} {}", source.content_key({}, {}), to_string(source.language),
                     source.block[0], source.block[1], source.block[2],
                     source.dynamic_shared_bytes);
}

/// The rows of an operand at an address; of a pool, its first one.
Region region(const TensorSpec& operand, std::uint64_t address) {
  const auto bytes = [&](std::int64_t elements) {
    return bytes_of(operand.dtype, static_cast<std::size_t>(elements));
  };
  if (operand.pool) return {address, bytes(operand.cols), 0, bytes(operand.cols)};
  if (operand.contiguous()) return {address, operand.bytes(), 0, operand.bytes()};
  if (operand.block_rows > 0) {
    if (operand.block_stride >= operand.row_stride()) return {address, operand.bytes(), 0, 0};
    const std::int64_t blocks = operand.rows / operand.block_rows;  // side by side in each row
    const std::int64_t width = (blocks - 1) * operand.block_stride + operand.cols;
    return {address, operand.bytes(), bytes(operand.row_stride()), bytes(width)};
  }
  return {address, operand.bytes(), bytes(operand.row_stride()), bytes(operand.cols)};
}

}  // namespace

Failure refused(std::string_view what, std::string_view why) {
  return invalid_argument(fmt::format("{}: {}", what, why));
}

Result<const Operation*> operation_of(const Catalog& catalog, const Problem& problem) {
  const Operation* const kernel = catalog.find(problem.op);
  if (kernel == nullptr) {
    return Failure{Status::invalid_argument, fmt::format("no operation {}", problem.op), {}};
  }
  if (auto good = check_problem(*kernel, problem); !good) {
    return refused(problem.op, good.failure().message);
  }
  return kernel;
}

Result<void> check_operands(const Problem& problem, std::span<const TensorSpec> operands,
                            std::span<const Tensor> tensors) {
  if (tensors.size() != operands.size()) {
    return refused(problem.key(),
                   fmt::format("{} operands, it has {}", tensors.size(), operands.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (std::string why = why_not(tensors[i], operands[i]); !why.empty())
      return refused(problem.key(), why);
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].role == Role::input) continue;
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (i == j || !tensors[i].overlaps(tensors[j])) continue;
      return refused(problem.key(), fmt::format("{} is written and overlaps {}", operands[i].name,
                                                operands[j].name));
    }
  }
  return {};
}

Result<void> check_addresses(const Problem& problem, std::span<const TensorSpec> operands,
                             std::span<const std::uint64_t> addresses) {
  const auto refuse = [&](const std::string& why) { return refused(problem.key(), why); };
  if (addresses.size() != operands.size()) {
    return refuse(fmt::format("{} operands, it has {}", addresses.size(), operands.size()));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t alignment = alignment_of(operands[i]);
    if (addresses[i] == 0) return refuse(operands[i].name + " has no address");
    if (addresses[i] % alignment != 0) {
      return refuse(fmt::format("{} is at address {:#x}, but it must be at a multiple of {}",
                                operands[i].name, addresses[i], alignment));
    }
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].role == Role::input) continue;
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (i == j ||
          !overlap(region(operands[i], addresses[i]), region(operands[j], addresses[j]))) {
        continue;
      }
      return refuse(
          fmt::format("{} is written and overlaps {}", operands[i].name, operands[j].name));
    }
  }
  return {};
}

Result<std::unique_ptr<Kernel>> KernelStore::make(const KernelSource& source,
                                                  const Binaries& binaries) {
  const auto compile = [&]() -> Result<std::unique_ptr<Kernel>> {
    auto compiled = device_.compile(source);
    if (compiled || compiled.failure().status != Status::unavailable) return compiled;
    Failure failure = compiled.failure();
    failure.message = fmt::format(
        "{}: no database carries it compiled for this device, and it "
        "can't be compiled here: {}",
        source.name, failure.message);
    return failure;
  };
  if (!binaries || source.call) return compile();
  const auto carried = binaries(source);
  if (!carried) return compile();
  auto loaded = device_.load(source, carried->binary);
  if (loaded) {
    ++from_databases_;
    telemetry::count("runtime.binaries");
    return loaded;
  }
  log(LogLevel::warning, "{}: its binary for {} is not used, so that it is compiled: {}",
      source.name, carried->target, loaded.failure().message);
  return compile();
}

Result<std::shared_ptr<const Kernel>> KernelStore::compile(const KernelSource& source,
                                                           const Binaries& binaries) {
  const std::string name = identity(source);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
    if (auto failed = failures_.extract(name)) return std::move(failed.mapped());
  }
  auto compiled = make(source, binaries);
  if (!compiled) return compiled.failure();
  const std::lock_guard lock(mutex_);
  return kernels_.try_emplace(name, *std::move(compiled)).first->second;
}

void KernelStore::warm(std::span<const KernelSource> sources, unsigned jobs,
                       const Binaries& binaries) {
  std::vector<const KernelSource*> missing;
  {
    const std::lock_guard lock(mutex_);
    std::unordered_set<std::string> seen;
    for (const KernelSource& source : sources) {
      const std::string name = identity(source);
      if (!kernels_.contains(name) && seen.insert(name).second) missing.push_back(&source);
    }
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      const auto compiled = compile(*missing[i], binaries);
      if (compiled) continue;
      const std::lock_guard lock(mutex_);
      failures_.try_emplace(identity(*missing[i]), compiled.failure());
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 1; i < std::min<std::size_t>(jobs, missing.size()); ++i) {
    threads.emplace_back(work);
  }
  work();
}

std::size_t KernelStore::from_databases() const {
  return from_databases_;
}

std::size_t KernelStore::size() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}

std::size_t KernelStore::from_cache() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& entry : kernels_) count += entry.second->from_cache() ? 1 : 0;
  return count;
}

}  // namespace greta::runtime
