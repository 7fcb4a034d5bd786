#pragma once

// Copies from global to shared memory that run beside the threads. Memory is written only when the
// thread waits, so that a missing or too weak wait is seen; what is read, and whether the target is
// shared memory that there is, is checked when the copy is issued.

#include "thread.hpp"

namespace greta_host {

/// PTX cp.async: 4, 8 or 16 bytes, aligned likewise on both sides. The first `valid` bytes are
/// copied, and zeros follow.
void copy_async(void* shared, const void* global, unsigned bytes, unsigned valid, GRETA_HOST_HERE);
inline void copy_async(void* shared, const void* global, unsigned bytes, GRETA_HOST_HERE) {
  copy_async(shared, global, bytes, bytes, file, line);
}
/// PTX cp.async.commit_group: the thread's copies since the last commit are a group.
void copy_commit();
/// PTX cp.async.wait_group: all of the thread's groups are done but the `pending` latest. Other
/// threads see them after the next barrier.
void copy_wait(unsigned pending);
/// PTX cp.async.wait_all: committed or not.
void copy_wait_all();

/// AMD global_load_lds: each lane's 4 bytes (gfx950: 12 or 16 as well) land at `shared` + lane *
/// bytes; `shared` is the same for the whole wave.
void load_to_shared(const void* global, void* shared, unsigned bytes, GRETA_HOST_HERE);
/// AMD s_waitcnt vmcnt(pending): all of the thread's loads to shared memory are done but the
/// `pending` latest.
void load_wait(unsigned pending);

}  // namespace greta_host
