// Only this file compiles volk, which opens libvulkan.so.1 at run time.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#define VOLK_IMPLEMENTATION
#include <volk.h>
#pragma GCC diagnostic pop
