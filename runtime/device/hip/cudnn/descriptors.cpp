#include "runtime/device/hip/cudnn/descriptors.hpp"

#include <fmt/format.h>

#include <array>

#include "runtime/device/refusal.hpp"

namespace greta::device::hip::cudnn {

Descriptors::~Descriptors() {
  for (auto last = owned_.rbegin(); last != owned_.rend(); ++last) functions_.release(*last);
}

void Descriptors::check(int status, const char* what) const {
  if (status == 0) return;
  std::array<char, 1024> message{};
  functions_.last_error(message.data(), message.size() - 1);
  throw Refusal(as_,
                fmt::format("cuDNN: {} fails with status {}: {}", what, status, message.data()));
}

Descriptor Descriptors::make(Kind kind) {
  Descriptor made = nullptr;
  check(functions_.make(static_cast<int>(kind), &made), "CreateDescriptor");
  owned_.push_back(made);
  return made;
}

void Descriptors::finalize(Descriptor descriptor) const {
  check(functions_.finalize(descriptor), "Finalize");
}

void Descriptors::set(Descriptor to, Attribute attribute, Type type, std::int64_t count,
                      const void* values) const {
  const int number = static_cast<int>(attribute);
  const int status = functions_.set(to, number, static_cast<int>(type), count, values);
  if (status != 0) check(status, fmt::format("SetAttribute {}", number).c_str());
}
void Descriptors::set(Descriptor to, Attribute attribute, Descriptor value) const {
  set(to, attribute, Type::descriptor, 1, &value);
}
void Descriptors::set(Descriptor to, Attribute attribute, std::int64_t value) const {
  set(to, attribute, Type::int64, 1, &value);
}
void Descriptors::set(Descriptor to, Attribute attribute, bool value) const {
  set(to, attribute, Type::boolean, 1, &value);
}
void Descriptors::set(Descriptor to, Attribute attribute, Data value) const {
  set(to, attribute, Type::data_type, static_cast<int>(value));
}
void Descriptors::set(Descriptor to, Attribute attribute, Type type, int value) const {
  set(to, attribute, type, 1, &value);
}
void Descriptors::set(Descriptor to, Attribute attribute,
                      std::span<const std::int64_t> values) const {
  set(to, attribute, Type::int64, static_cast<std::int64_t>(values.size()), values.data());
}
void Descriptors::set(Descriptor to, Attribute attribute,
                      std::span<const Descriptor> values) const {
  set(to, attribute, Type::descriptor, static_cast<std::int64_t>(values.size()), values.data());
}
void Descriptors::set_pointers(Descriptor to, Attribute attribute,
                               std::span<void* const> values) const {
  set(to, attribute, Type::void_ptr, static_cast<std::int64_t>(values.size()), values.data());
}
void Descriptors::set_handle(Descriptor to, Attribute attribute, Handle handle) const {
  set(to, attribute, Type::handle, 1, &handle);
}

std::int64_t Descriptors::number(Descriptor of, Attribute attribute, Type type) const {
  std::int64_t value = 0, count = 0;  // also large enough for an enumerator
  check(functions_.get(of, static_cast<int>(attribute), static_cast<int>(type), 1, &count, &value),
        "GetAttribute");
  return value;
}

std::vector<Descriptor> Descriptors::list(Descriptor of, Attribute attribute, Kind kind,
                                          std::int64_t most) {
  std::vector<Descriptor> found;
  for (std::int64_t i = 0; i < most; ++i) found.push_back(make(kind));
  std::int64_t count = 0;
  check(functions_.get(of, static_cast<int>(attribute), static_cast<int>(Type::descriptor), most,
                       &count, found.data()),
        "GetAttribute");
  found.resize(static_cast<std::size_t>(std::min(count, most)));
  return found;
}

}  // namespace greta::device::hip::cudnn
