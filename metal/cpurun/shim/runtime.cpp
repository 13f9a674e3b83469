// Runs a kernel's grid: an OS thread takes a threadgroup at a time, its threads are fibers. Invariants:
//   - a fiber is ready, running, waiting at a threadgroup barrier, waiting in its simdgroup, or ended;
//   - a wait ends when every live fiber of the group has arrived, and then all become ready in an order drawn from the seed;
//   - if no fiber is ready and some are alive, the kernel diverged around a barrier: the run ends with an error.
#include "metal_stdlib"
#undef kernel
#undef device
#undef thread
#undef constant
#undef threadgroup
#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>
#include <pthread.h>
#include <stdlib.h>
#include <vector>

extern "C" void msl_switch(void **from, void *to);
#if defined(__x86_64__)
asm(R"(
.text
.hidden msl_switch
.globl msl_switch
.type msl_switch,@function
msl_switch:
 push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15
 mov %rsp,(%rdi)
 mov %rsi,%rsp
 pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp
 ret
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl msl_switch
msl_switch:
 sub sp,sp,#160
 stp x19,x20,[sp,#0]
 stp x21,x22,[sp,#16]
 stp x23,x24,[sp,#32]
 stp x25,x26,[sp,#48]
 stp x27,x28,[sp,#64]
 stp x29,x30,[sp,#80]
 stp d8,d9,[sp,#96]
 stp d10,d11,[sp,#112]
 stp d12,d13,[sp,#128]
 stp d14,d15,[sp,#144]
 mov x2,sp
 str x2,[x0]
 mov sp,x1
 ldp x19,x20,[sp,#0]
 ldp x21,x22,[sp,#16]
 ldp x23,x24,[sp,#32]
 ldp x25,x26,[sp,#48]
 ldp x27,x28,[sp,#64]
 ldp x29,x30,[sp,#80]
 ldp d8,d9,[sp,#96]
 ldp d10,d11,[sp,#112]
 ldp d12,d13,[sp,#128]
 ldp d14,d15,[sp,#144]
 add sp,sp,#160
 ret
)");
#endif

namespace {
constexpr size_t stack_bytes = 64 << 10;
constexpr unsigned max_threads = 1024;
constexpr size_t arena_bytes = 64 << 10;      // threadgroup memory and the gaps around it
constexpr size_t threadgroup_limit = 32 << 10;  // Metal's
constexpr unsigned gap = 64;                  // bytes of poison behind each threadgroup array

enum error { ok = 0, diverged = 1, threadgroup_overrun = 2, threadgroup_too_big = 3, mixed_operations = 4 };

struct Fiber {
  void *sp;
  msl_tid tid;
  bool ended;
  unsigned parity;  // which slots its last simdgroup operation used
};
struct alignas(64) Simdgroup {
  char slots[2][msl_result + 256];
  unsigned live, arrived, parity, active, bytes, snapshot[2];
  msl_fragment fragments[msl_products][32];  // by product and lane
  alignas(32) float products[msl_products][64];
};
struct Array { const char *site; unsigned at, bytes; };

struct Worker {
  void *scheduler;
  char *stacks, *arena;
  Fiber fibers[max_threads];
  Simdgroup groups[max_threads / 32];
  unsigned ready[max_threads], head, count;  // ring of fibers to run
  unsigned threads, live, arrived, current;
  uint64_t random;
  Array arrays[64];
  unsigned array_count, arena_used, threadgroup_used;
  void (*run)(void **, msl_tid *);
  void **arguments;
  int failure;
};
thread_local Worker *W;

inline unsigned draw(Worker *w, unsigned n) {
  w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
  return (unsigned)((w->random >> 32) * n >> 32);
}

// release makes fibers [from, from+n) that have not ended ready, in random order, at the back or at the front of the ring:
// at the front one simdgroup runs ahead of the others, at the back all go step by step.
void release(Worker *w, unsigned from, unsigned n, bool front) {
  unsigned order[max_threads], m = 0;
  if (n == 32 && w->groups[from / 32].live == 32) {  // a whole simdgroup, often: a walk by a random odd stride
    unsigned start = draw(w, 32), stride = 2 * draw(w, 16) + 1;
    if (front) w->head = (w->head + max_threads - 32) % max_threads;
    unsigned at = front ? w->head : w->head + w->count;
    for (unsigned i = 0; i < 32; i++) w->ready[(at + i) % max_threads] = from + ((i * stride + start) & 31);
    w->count += 32;
    return;
  }
  for (unsigned i = from; i < from + n; i++)
    if (!w->fibers[i].ended) order[m++] = i;
  for (unsigned i = m; i > 1; i--) {
    unsigned j = draw(w, i), t = order[i - 1];
    order[i - 1] = order[j], order[j] = t;
  }
  if (front) w->head = (w->head + max_threads - m) % max_threads;
  unsigned at = front ? w->head : w->head + w->count;
  for (unsigned i = 0; i < m; i++) w->ready[(at + i) % max_threads] = order[i];
  w->count += m;
}

// leave gives the processor to the next ready fiber, or back to the scheduler when there is none.
void leave(Worker *w) {
  Fiber *old = &w->fibers[w->current];
  if (w->count == 0) {
    if (w->live && !w->failure) w->failure = diverged;
    msl_switch(&old->sp, w->scheduler);
    return;
  }
  unsigned next = w->ready[w->head];
  w->head = (w->head + 1) % max_threads, w->count--;
  if (next == w->current) return;
  w->current = next;
  msl_self = &w->fibers[next].tid;
  msl_switch(&old->sp, w->fibers[next].sp);
}

void stop(Worker *w, int failure) {
  w->failure = failure;
  Fiber *old = &w->fibers[w->current];
  msl_switch(&old->sp, w->scheduler);
}

void check_threadgroup(Worker *w) {
  if (w->live && w->arrived == w->live) {
    w->arrived = 0;
    release(w, 0, w->threads, false);
  }
}

void check_simdgroup(Worker *w, unsigned g, msl_finisher finish) {
  Simdgroup &s = w->groups[g];
  if (!s.live || s.arrived != s.live) return;
  s.arrived = 0;
  s.snapshot[s.parity] = s.active;
  if (finish) finish(s.slots[s.parity], s.slots[s.parity] + msl_result, s.active);
  s.parity ^= 1;
  unsigned from = g * 32;
  release(w, from, w->threads - from < 32 ? w->threads - from : 32, draw(w, 2));
}

void entry() {
  Worker *w = W;
  Fiber *f = &w->fibers[w->current];
  w->run(w->arguments, &f->tid);
  w = W, f = &w->fibers[w->current];
  f->ended = true;
  w->live--;
  Simdgroup &s = w->groups[f->tid.sg];
  s.live--;
  s.active &= ~(1u << f->tid.lane);
  check_simdgroup(w, f->tid.sg, nullptr);
  check_threadgroup(w);
  leave(w);
  abort();
}
}  // namespace

extern "C" {
thread_local msl_tid *msl_self;

__attribute__((noinline)) void msl_threadgroup_barrier() {
  Worker *w = W;
  w->arrived++;
  check_threadgroup(w);
  leave(w);
}

__attribute__((noinline)) char *msl_exchange(const void *value, unsigned bytes, msl_finisher finish) {
  Worker *w = W;
  Fiber *f = &w->fibers[w->current];
  Simdgroup &s = w->groups[f->tid.sg];
  if (s.arrived && s.bytes != bytes) stop(w, mixed_operations);
  s.bytes = bytes;
  f->parity = s.parity;
  char *slots = s.slots[s.parity];
  memcpy(slots + 64 * f->tid.lane, value, bytes);
  s.arrived++;
  check_simdgroup(w, f->tid.sg, finish);
  leave(w);
  return slots;
}

// multiply makes one 8×8 product of what the lanes brought.
static void multiply(const msl_fragment *f, float *out) {
  typedef metal::simdgroup_float8x8 M;
  typedef float row8 __attribute__((vector_size(32)));
  float a[8][8];
  alignas(32) float b[8][8];
  for (unsigned l = 0; l < 32; l++)
    for (unsigned k = 0; k < 2; k++) a[M::row(l)][M::column(l) + k] = f[l].a[k], b[M::row(l)][M::column(l) + k] = f[l].b[k];
  for (unsigned i = 0; i < 8; i++) {
    row8 sum = {};
    for (unsigned k = 0; k < 8; k++) sum += a[i][k] * *(row8 *)b[k];
    *(row8 *)(out + 8 * i) = sum;
  }
}

// A lane that a product counts on and that never comes, or has ended, is a divergence: matrices are of all 32.
__attribute__((noinline)) void msl_multiply_pending(msl_pending *p) {
  Worker *w = W;
  Fiber *f = &w->fibers[w->current];
  Simdgroup &s = w->groups[f->tid.sg];
  unsigned n = p->n, lane = f->tid.lane, kind = 1000 + n;
  p->n = 0;
  if (s.live != 32) stop(w, diverged);
  if (s.arrived && s.bytes != kind) stop(w, mixed_operations);
  s.bytes = kind;
  for (unsigned i = 0; i < n; i++) s.fragments[i][lane] = p->fragments[i];
  if (++s.arrived == 32) {
    for (unsigned i = 0; i < n; i++) multiply(s.fragments[i], s.products[i]);
  }
  check_simdgroup(w, f->tid.sg, nullptr);
  leave(w);
  unsigned at = 8 * metal::simdgroup_float8x8::row(lane) + metal::simdgroup_float8x8::column(lane);
  for (unsigned i = 0; i < n; i++) p->sums[i][0] += s.products[i][at], p->sums[i][1] += s.products[i][at + 1];
  // Nobody may bring new fragments before all have taken their sums: a second meeting.
  s.bytes = kind + 1000;
  s.arrived++;
  check_simdgroup(w, f->tid.sg, nullptr);
  leave(w);
}

uint msl_active() {
  Worker *w = W;
  Fiber *f = &w->fibers[w->current];
  return w->groups[f->tid.sg].snapshot[f->parity];
}

void *msl_threadgroup_array(const char *site, unsigned long bytes) {
  Worker *w = W;
  for (unsigned i = 0; i < w->array_count; i++)
    if (w->arrays[i].site == site) return w->arena + w->arrays[i].at;
  w->threadgroup_used += (bytes + 15) & ~15ul;
  if (w->threadgroup_used > threadgroup_limit || w->array_count == 64) stop(w, threadgroup_too_big);
  Array &a = w->arrays[w->array_count++];
  a = Array{site, w->arena_used, (unsigned)bytes};
  w->arena_used += ((bytes + 15) & ~15ul) + gap;
  return w->arena + a.at;
}
}

namespace {
struct Job {
  void (*run)(void **, msl_tid *);
  void **arguments;
  const unsigned *grid, *group;
  uint64_t seed, total, stride, offset;
  std::atomic<uint64_t> next;
  std::atomic<int> failure;
};

void prepare_fiber(Worker *w, unsigned i, const unsigned *grid, const unsigned *group, const unsigned *at) {
  Fiber &f = w->fibers[i];
  f.ended = false;
  f.tid.pending.n = 0;
  unsigned in[3] = {i % group[0], i / group[0] % group[1], i / group[0] / group[1]};
  for (int d = 0; d < 3; d++) {
    f.tid.tptg[d] = in[d], f.tid.tgpig[d] = at[d], f.tid.tpig[d] = at[d] * group[d] + in[d];
    f.tid.tpt[d] = group[d], f.tid.tgpg[d] = grid[d], f.tid.tpg[d] = grid[d] * group[d];
  }
  f.tid.lane = i & 31, f.tid.sg = i >> 5, f.tid.nsg = (w->threads + 31) / 32, f.tid.tiitg = i;
  // Tops are staggered: at equal distances they would fall on the same sets of the cache.
  char *top = w->stacks + (size_t)(i + 1) * stack_bytes - 64 - (i % 53) * 128;
#if defined(__x86_64__)
  void **sp = (void **)top;
  *--sp = 0, *--sp = (void *)entry;
  for (int k = 0; k < 6; k++) *--sp = 0;
  f.sp = sp;
#else
  char *sp = top - 160;
  memset(sp, 0, 160);
  *(void **)(sp + 88) = (void *)entry;
  f.sp = sp;
#endif
}

void run_threadgroup(Worker *w, Job *j, uint64_t index) {
  const unsigned *grid = j->grid, *group = j->group;
  unsigned at[3] = {(unsigned)(index % grid[0]), (unsigned)(index / grid[0] % grid[1]), (unsigned)(index / grid[0] / grid[1])};
  w->threads = w->live = group[0] * group[1] * group[2];
  w->arrived = w->head = w->count = w->array_count = w->threadgroup_used = 0;
  w->failure = ok;
  w->random = (j->seed + 1) * 0x9E3779B97F4A7C15ull ^ (index + 1) * 0xBF58476D1CE4E5B9ull;
  if (!w->random) w->random = 1;
  memset(w->arena, 0xFF, w->arena_used);  // NaN in every float format
  w->arena_used = gap;
  for (unsigned g = 0; g * 32 < w->threads; g++) {
    Simdgroup &s = w->groups[g];
    s.live = w->threads - g * 32 < 32 ? w->threads - g * 32 : 32;
    s.active = s.live == 32 ? ~0u : (1u << s.live) - 1;
    s.arrived = s.parity = s.bytes = 0;
  }
  for (unsigned i = 0; i < w->threads; i++) prepare_fiber(w, i, grid, group, at);
  release(w, 0, w->threads, false);
  w->current = w->ready[w->head];
  w->head = (w->head + 1) % max_threads, w->count--;
  msl_self = &w->fibers[w->current].tid;
  msl_switch(&w->scheduler, w->fibers[w->current].sp);
  for (unsigned i = 0; i < w->array_count && !w->failure; i++) {
    unsigned char *end = (unsigned char *)w->arena + w->arrays[i].at + w->arrays[i].bytes;
    for (unsigned k = 0; k < gap; k++)
      if (end[k] != 0xFF) w->failure = threadgroup_overrun;
  }
}

std::mutex idle_lock;
std::vector<Worker *> idle;

Worker *take_worker() {
  {
    std::lock_guard<std::mutex> l(idle_lock);
    if (!idle.empty()) {
      Worker *w = idle.back();
      idle.pop_back();
      return w;
    }
  }
  Worker *w = (Worker *)mmap(0, sizeof(Worker), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  w->stacks = (char *)mmap(0, max_threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  w->arena = (char *)mmap(0, arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(w->arena, 0xFF, arena_bytes);
  w->arena_used = gap;
  return w;
}

void *work(void *p) {
  Job *j = (Job *)p;
  Worker *w = take_worker();
  W = w, w->run = j->run, w->arguments = j->arguments;
  for (uint64_t i; (i = j->next.fetch_add(1)) < j->total && !j->failure;) {
    run_threadgroup(w, j, (i * j->stride + j->offset) % j->total);
    if (w->failure) j->failure = w->failure;
  }
  std::lock_guard<std::mutex> l(idle_lock);
  idle.push_back(w);
  return nullptr;
}
}  // namespace

// msl_run runs grid threadgroups of group threads on this many OS threads, in an order drawn from seed. arguments: pointers by buffer index.
extern "C" int msl_run(void (*run)(void **, msl_tid *), void **arguments, const unsigned *grid, const unsigned *group, uint64_t seed, unsigned threads) {
  Job j{run, arguments, grid, group, seed, (uint64_t)grid[0] * grid[1] * grid[2], 1, 0, {0}, {0}};
  if (j.total > 1) {  // a walk through all threadgroups by a stride that shares no factor with their number
    uint64_t r = (seed + 1) * 0x9E3779B97F4A7C15ull;
    j.offset = (r >> 20) % j.total;
    for (j.stride = 1 + (r >> 8) % j.total;; j.stride++) {
      uint64_t a = j.stride, b = j.total;
      while (b) { uint64_t t = a % b; a = b, b = t; }
      if (a == 1) break;
    }
    if (j.total > 1u << 31) j.stride = 1;
  }
  pthread_t others[16];
  unsigned n = 0;
  for (; n + 1 < threads && n < 16 && n + 1 < j.total; n++) pthread_create(&others[n], 0, work, &j);
  work(&j);
  for (unsigned i = 0; i < n; i++) pthread_join(others[i], 0);
  return j.failure;
}
