// Linked into programs built with sanitizers.

/// Vulkan drivers leak a little memory when they are loaded. A leak can only be attributed to its
/// library, and thus be distinguished from GRETA's, while that library is loaded. So no library is
/// ever unloaded.
extern "C" int dlclose(void*) {
  return 0;
}

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_\n"
         "leak:libVkLayer\n"
         "leak:libLLVM\n";
}
