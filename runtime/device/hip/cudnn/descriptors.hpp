#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/hip/cudnn/abi.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip::cudnn {

/// Makes descriptors of cuDNN's backend and owns them: they are released together, the last one
/// first. Functions throw a Refusal with cuDNN's message, whose status is `as`.
class Descriptors {
 public:
  Descriptors(const Functions& functions, Status as) : functions_(functions), as_(as) {}
  ~Descriptors();
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  Descriptor make(Kind kind);
  /// Ends the setting of attributes.
  void finalize(Descriptor descriptor) const;

  void set(Descriptor to, Attribute attribute, Descriptor value) const;
  void set(Descriptor to, Attribute attribute, std::int64_t value) const;
  void set(Descriptor to, Attribute attribute, bool value) const;
  void set(Descriptor to, Attribute attribute, Data value) const;
  void set(Descriptor to, Attribute attribute, Type type, int value) const;
  void set(Descriptor to, Attribute attribute, std::span<const std::int64_t> values) const;
  void set(Descriptor to, Attribute attribute, std::span<const Descriptor> values) const;
  void set_pointers(Descriptor to, Attribute attribute, std::span<void* const> values) const;
  void set_handle(Descriptor to, Attribute attribute, Handle handle) const;

  std::int64_t number(Descriptor of, Attribute attribute, Type type = Type::int64) const;
  /// Returns up to `most` descriptors of this kind that an attribute lists.
  std::vector<Descriptor> list(Descriptor of, Attribute attribute, Kind kind, std::int64_t most);

  /// Throws a Refusal that names the call, unless it succeeded.
  void check(int status, const char* what) const;

 private:
  void set(Descriptor to, Attribute attribute, Type type, std::int64_t count,
           const void* values) const;

  const Functions& functions_;
  Status as_;
  std::vector<Descriptor> owned_;
};

}  // namespace greta::device::hip::cudnn
