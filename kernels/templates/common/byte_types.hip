// Names of the numbers of eight bits that matrix cores multiply. On gfx942 e4m3 and e5m2 are AMD's fnuz
// forms, elsewhere OCP's.
#pragma once

struct E4m3 {
  static constexpr int number = 0;
};
struct E5m2 {
  static constexpr int number = 1;
};
struct Int8 {
  static constexpr int number = 4;
};
