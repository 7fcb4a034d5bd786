#pragma once

// Calls a kernel with parameters taken from a packed argument block.

#include "runtime/device/hip/host/language/matrix_warpgroups.hpp"
#include "runtime/device/hip/host/language/races.hpp"

namespace greta_host {

template <auto kernel>
struct Kernel;

template <typename... Parameters, void (*kernel)(Parameters...)>
struct Kernel<kernel> {
  static constexpr unsigned count = sizeof...(Parameters);

  struct Layout {
    unsigned offset[count + 1] = {};  ///< of each parameter; the last is the block's size
  };

  /// Values lie one after another, each at its natural alignment.
  static constexpr Layout layout() {
    Layout result;
    unsigned next = 0, index = 0;
    const auto place = [&](unsigned bytes, unsigned alignment) {
      result.offset[index++] = next = (next + alignment - 1) / alignment * alignment;
      next += bytes;
    };
    (place(sizeof(Parameters), alignof(Parameters)), ...);
    result.offset[count] = next;
    return result;
  }

  template <typename T>
  static T read(const unsigned char* at) {
    static_assert(__is_trivially_copyable(T), "a kernel's parameters are plain values");
    T value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
  }

  template <unsigned... index>
  struct Sequence {
    static void run(const unsigned char* arguments) {
      constexpr Layout places = layout();
      forget_products();
      kernel(read<Parameters>(arguments + places.offset[index])...);
    }
  };

  template <unsigned n, unsigned... index>
  struct Build : Build<n - 1, n - 1, index...> {};
  template <unsigned... index>
  struct Build<0, index...> {
    using Type = Sequence<index...>;
  };

  static void run(const unsigned char* arguments) { Build<count>::Type::run(arguments); }

  static constexpr Entry entry(const char* name, Index cluster) {
    return {name,
            GRETA_HOST,
            &run,
            layout().offset[count],
            &current,
            greta_host_dynamic,
            GRETA_HOST_DYNAMIC_BYTES,
            &greta_host_shared,
            &greta_host_shared_end,
            finds_races,
            cluster};
  }
};

}  // namespace greta_host

/// Stands after the kernel's text. The kernel may be the instantiation of a template.
#define GRETA_HOST_ENTRY(name, ...)                                                            \
  extern "C" __attribute__((visibility("default"))) const greta_host::Entry greta_host_entry = \
      greta_host::Kernel<&__VA_ARGS__>::entry(name, greta_host::cluster_dims<0>);
