// Linked into programs built with sanitizers.

/// Vulkan drivers leak a little when they are loaded. A leak can only be attributed to its library,
/// and thus be told apart from GRETA's own, while the library is loaded: keep them all.
extern "C" int dlclose(void*) {
  return 0;
}

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libvulkan_\n"
         "leak:libVkLayer\n"
         "leak:libLLVM\n";
}
