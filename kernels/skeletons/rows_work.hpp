#pragma once

#include "kernels/model/launch_work.hpp"
#include "kernels/skeletons/rows.hpp"

/// The work of the kernels in common/rows.{hip,glsl}.
namespace greta::kernels::rows {

KernelWork held_work(const Shape&, const DeviceInfo&, const Config&);
/// Of the variants `streamed` and `naive`.
KernelWork staged_work(const Shape&, const DeviceInfo&, const Config&);
KernelWork streamed_work(const Shape&, const DeviceInfo&, const Config&);
KernelWork split_work(const Shape&, const DeviceInfo&, const Config&);

}  // namespace greta::kernels::rows
