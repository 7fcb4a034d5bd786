#pragma once

/// The layers of docs/architecture.md, lowest first. Each layer is a namespace and sees the names
/// of the layers below it. A name that two lower layers define must be qualified; otherwise the
/// compiler reports an ambiguity.
namespace greta {

namespace device {}

namespace kernels {
using namespace device;
}

namespace db {
using namespace device;
using namespace kernels;
}  // namespace db

namespace runtime {
using namespace device;
using namespace kernels;
using namespace db;
}  // namespace runtime

namespace tuner {
using namespace device;
using namespace kernels;
using namespace db;

namespace model {
using namespace runtime;
}

namespace cli {
using namespace runtime;
using namespace model;
}  // namespace cli
}  // namespace tuner

}  // namespace greta
