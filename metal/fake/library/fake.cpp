// A libobjc and a Metal that answer the calls of package mtl, and no others, on the CPU-compiled kernels. Stricter than the real ones:
//   - what Metal leaves undefined ends the process with a sentence: a selector, object or index that is not right, an
//     autoreleased object without a pool, a pool drained on another thread, an object used after its last release;
//   - work begins only after commit, on another thread, a random moment later; between two barriers of an encoder the
//     dispatches run in random order;
//   - new buffers are full of NaN and end at a guard page; released ones cannot be touched any more.
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {
[[noreturn]] void fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fputs("fake metal: ", stderr);
  vfprintf(stderr, format, list);
  fputc('\n', stderr);
  abort();
}

struct Size { unsigned long w, h, d; };
struct Configuration { uint64_t seed; long skip_barrier, fail_commit; unsigned threads, delay_us; uint64_t working_set, max_buffer; unsigned residency, dispatch_us, family, idle; };
struct Counters { uint64_t calls, dispatches, barriers, commits, buffers, bytes, nocopy_bytes, resident_bytes, most_in_flight; };
Configuration config;
Counters counters;
const char *(*compiler)(const char *source, char *error, long error_bytes);
// What runs kernels elsewhere than on the CPU, when set: memory that it sees, libraries and functions of its own.
struct Backend {
  void *(*allocate)(unsigned long bytes);
  void (*adopt)(void *, unsigned long bytes);
  void (*release)(void *, int adopted);
  void *(*library)(const char *source, char *error, long error_bytes);
  void *(*function)(void *library, const char *name, const unsigned *values, unsigned mask);
  int (*run)(void *function, void **arguments, const unsigned *grid, const unsigned *group);
};
const Backend *backend;

enum Kind { FREED, CLASS, STRING, ERROR, DEVICE, OPTIONS, VALUES, LIBRARY, FUNCTION, PIPELINE, BUFFER, QUEUE, COMMANDS, ENCODER, POOL, RESIDENCY_DESCRIPTOR, RESIDENCY };
const char *kind_names[] = {"freed object", "class", "NSString", "NSError", "MTLDevice", "MTLCompileOptions", "MTLFunctionConstantValues", "MTLLibrary", "MTLFunction",
                            "MTLComputePipelineState", "MTLBuffer", "MTLCommandQueue", "MTLCommandBuffer", "MTLComputeCommandEncoder", "NSAutoreleasePool",
                            "MTLResidencySetDescriptor", "MTLResidencySet"};

struct Object;
struct Binding { Object *buffer; unsigned long offset; };
struct Dispatch { Object *pipeline; std::map<unsigned, Binding> bindings; unsigned grid[3], group[3]; unsigned phase; };

struct Object {
  Kind kind;
  int count = 1;
  std::string text;                    // CLASS, STRING, ERROR, FUNCTION: a name or a message
  std::map<unsigned, uint32_t> values; // VALUES, FUNCTION, PIPELINE
  void *library = nullptr, *kernel = nullptr;
  char *mapping = nullptr, *data = nullptr;  // BUFFER
  bool adopted = false;
  unsigned long mapped = 0, length = 0;
  unsigned long language = 0;
  bool fast_math = true;
  Object *owner = nullptr;  // ENCODER: its command buffer
  Object *pipeline = nullptr;
  std::map<unsigned, Binding> bindings;
  std::vector<Dispatch> work;
  unsigned phase = 0;
  bool ended = false, committed = false;
  int status = 0;
  double start = 0, end = 0;
  pthread_t thread;
  std::vector<Object *> pooled;
};

std::mutex lock;
std::condition_variable changed;
std::deque<Object *> queue;
uint64_t in_flight;
thread_local std::vector<Object *> pools;

Object *make(Kind k) {
  Object *o = new Object;
  o->kind = k;
  return o;
}

Object *autoreleased(Object *o) {
  if (pools.empty()) fail("an autoreleased %s without a pool on this thread", kind_names[o->kind]);
  pools.back()->pooled.push_back(o);
  return o;
}

// poison makes released memory fault at a touch. The oldest is unmapped, so that a long run of tests ends neither memory nor maps.
void poison(char *mapping, unsigned long n) {
  static std::deque<std::pair<char *, unsigned long>> released;
  mmap(mapping, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  std::unique_lock<std::mutex> l(lock);
  released.emplace_back(mapping, n);
  if (released.size() <= 2048) return;
  munmap(released.front().first, released.front().second);
  released.pop_front();
}

void release(Object *o) {
  if (o->kind == FREED) fail("release of a freed object");
  if (--o->count > 0) return;
  if (o->kind == COMMANDS) {
    std::unique_lock<std::mutex> l(lock);
    if (o->committed && o->status < 4) fail("a command buffer was released before it was done");
  }
  if (o->kind == RESIDENCY && (o->owner || o->length)) fail("a residency set was released while it holds memory");
  if (o->kind == BUFFER && backend) backend->release(o->data, o->adopted);
  else if (o->kind == BUFFER && o->mapping) poison(o->mapping, o->mapped);
  o->kind = FREED;
  o->work.clear();
  o->bindings.clear();
  o->pooled.clear();
}

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t state = 1;
uint64_t draw(uint64_t n) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (state >> 20) % n;
}

typedef int (*Run)(void *, void **, const unsigned *, const unsigned *, uint64_t, unsigned);

void set_values(void *library, const std::map<unsigned, uint32_t> &values) {
  for (auto &v : values) {
    char name[32];
    snprintf(name, sizeof name, "mslc_%u", v.first);
    void **at = (void **)dlsym(library, name);
    if (at) *(uint32_t *)*at = v.second;
  }
}

const char *execute(Dispatch &d) {
  void *arguments[31] = {};
  for (auto &b : d.bindings) {
    Binding &x = b.second;
    if (x.buffer->kind != BUFFER) fail("a buffer at index %u was released before its command buffer ran", b.first);
    else arguments[b.first] = x.buffer->data + x.offset;
  }
  if (config.idle) return nullptr;
  if (backend) return backend->run(d.pipeline->kernel, arguments, d.grid, d.group) ? "the backend refused a dispatch" : nullptr;
  set_values(d.pipeline->library, d.pipeline->values);
  Run run = (Run)dlsym(d.pipeline->library, "msl_run");
  int code = run(d.pipeline->kernel, arguments, d.grid, d.group, config.seed + draw(1u << 30), config.threads ? config.threads : 1);
  if (code == 0) return nullptr;
  static char message[160];
  snprintf(message, sizeof message, "%s broke rule %d of the kernel runner", d.pipeline->text.c_str(), code);
  return message;
}

void *gpu(void *) {
  for (;;) {
    std::unique_lock<std::mutex> l(lock);
    while (queue.empty()) changed.wait(l);
    Object *c = queue.front();
    queue.pop_front();
    bool refuse = config.fail_commit == 0;
    if (config.fail_commit >= 0) config.fail_commit--;
    l.unlock();
    if (config.delay_us) usleep((unsigned)draw(config.delay_us));
    double start = now();
    const char *error = refuse ? "the fake was told to fail here" : nullptr;
    for (size_t at = 0; at < c->work.size() && !error;) {
      size_t to = at;
      while (to < c->work.size() && c->work[to].phase == c->work[at].phase) to++;
      std::vector<size_t> order;
      for (size_t i = at; i < to; i++) order.push_back(i);
      for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[draw(i)]);
      for (size_t i : order)
        if (!error) error = execute(c->work[i]);
      at = to;
    }
    l.lock();
    c->start = start, c->end = now();
    if (config.dispatch_us) c->end = start + 1e-6 * config.dispatch_us * (double)c->work.size();
    in_flight--;
    c->status = error ? 5 : 4;
    if (error) c->text = error;
    c->work.clear();
    changed.notify_all();
  }
  return nullptr;
}

Object *new_buffer(unsigned long n) {
  if (n == 0 || n > config.max_buffer) return nullptr;
  unsigned long page = (unsigned long)getpagesize(), inner = (n + 15) & ~15ul, pages = (inner + page - 1) / page * page;
  Object *o = make(BUFFER);
  if (backend) {
    o->data = (char *)backend->allocate(inner);
    o->length = n;
    memset(o->data, 0xFF, inner);
    counters.buffers++, counters.bytes += n;
    return o;
  }
  o->mapped = pages + 2 * page;
  o->mapping = (char *)mmap(0, o->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (o->mapping == MAP_FAILED) return nullptr;
  mprotect(o->mapping, page, PROT_NONE);
  mprotect(o->mapping + page + pages, page, PROT_NONE);
  o->data = o->mapping + page + pages - inner;
  o->length = n;
  if (n <= 256ul << 20) memset(o->data, 0xFF, inner);
  counters.buffers++, counters.bytes += n;
  return o;
}

#define SELECTORS(X)                                                                                              \
  X(name, "name") X(supportsFamily, "supportsFamily:") X(workingSet, "recommendedMaxWorkingSetSize")              \
  X(maxBuffer, "maxBufferLength") X(unified, "hasUnifiedMemory") X(responds, "respondsToSelector:") X(new_, "new") \
  X(release_, "release") X(drain, "drain") X(string, "stringWithUTF8String:") X(utf8, "UTF8String")               \
  X(description, "localizedDescription") X(setLanguage, "setLanguageVersion:") X(setFast, "setFastMathEnabled:")  \
  X(newLibrary, "newLibraryWithSource:options:error:") X(newFunction, "newFunctionWithName:")                     \
  X(setConstant, "setConstantValue:type:atIndex:") X(newFunctionValues, "newFunctionWithName:constantValues:error:") \
  X(newPipeline, "newComputePipelineStateWithFunction:error:") X(maxThreads, "maxTotalThreadsPerThreadgroup")     \
  X(width, "threadExecutionWidth") X(newBuffer, "newBufferWithLength:options:")                                   \
  X(newNoCopy, "newBufferWithBytesNoCopy:length:options:deallocator:") X(contents, "contents")                    \
  X(newQueue, "newCommandQueue") X(commandBuffer, "commandBufferWithUnretainedReferences") X(retain, "retain")    \
  X(encoder, "computeCommandEncoderWithDispatchType:") X(setPipeline, "setComputePipelineState:")                 \
  X(setBuffers, "setBuffers:offsets:withRange:")                                                                  \
  X(dispatch, "dispatchThreadgroups:threadsPerThreadgroup:") X(barrier, "memoryBarrierWithScope:")                \
  X(endEncoding, "endEncoding") X(commit, "commit") X(wait, "waitUntilCompleted") X(status, "status")             \
  X(error, "error") X(gpuStart, "GPUStartTime") X(gpuEnd, "GPUEndTime")                                           \
  X(newResidency, "newResidencySetWithDescriptor:error:") X(setCapacity, "setInitialCapacity:")                   \
  X(addAllocation, "addAllocation:") X(requestResidency, "requestResidency") X(addResidency, "addResidencySet:") \
  X(removeResidency, "removeResidencySet:") X(endResidency, "endResidency")
enum Selector {
#define X(id, text) S_##id,
  SELECTORS(X)
#undef X
  S_count
};
struct Sel { std::string text; int id; };

void need(Object *o, Kind k, Sel *s) {
  if (o->kind != k) fail("-[%s %s]: this is a method of %s", kind_names[o->kind], s->text.c_str(), kind_names[k]);
}

Object *error_object(const std::string &text, uintptr_t at) {
  Object *e = make(ERROR);
  e->text = text;
  if (at) *(Object **)at = autoreleased(e);
  return nullptr;
}

Object *function(Object *library, Object *name, Object *values, uintptr_t error) {
  if (name->kind != STRING) fail("a function name that is no string");
  if (backend) {
    unsigned list[16] = {}, mask = 0;
    if (values)
      for (auto &v : values->values) list[v.first & 15] = v.second, mask |= 1u << (v.first & 15);
    void *kernel = backend->function(library->library, name->text.c_str(), list, mask);
    if (!kernel) return error_object("there is no function " + name->text, error);
    Object *f = make(FUNCTION);
    f->text = name->text, f->library = library->library, f->kernel = kernel;
    return f;
  }
  std::string symbol = "mslk_" + name->text;
  void *kernel = dlsym(library->library, symbol.c_str());
  if (!kernel) return error_object("there is no function " + name->text, error);
  for (unsigned i = 0; i < 16; i++) {
    char constant[32];
    snprintf(constant, sizeof constant, "mslc_%u", i);
    if (dlsym(library->library, constant) && (!values || !values->values.count(i)))
      return error_object(name->text + " needs function constant " + std::to_string(i), error);
  }
  Object *f = make(FUNCTION);
  f->text = name->text, f->library = library->library, f->kernel = kernel;
  if (values) f->values = values->values;
  return f;
}

Object *library(const char *source, Object *options, uintptr_t error) {
  if (!options || options->kind != OPTIONS) fail("a library without compile options");
  if (options->language != (3ul << 16) + 1) return error_object("language version is not 3.1", error);
  if (options->fast_math) return error_object("fast math is on", error);
  static char message[16 << 10];
  if (backend) {
    void *handle = backend->library(source, message, sizeof message);
    if (!handle) return error_object(message, error);
    Object *l = make(LIBRARY);
    l->library = handle;
    return l;
  }
  const char *path = compiler ? compiler(source, message, sizeof message) : nullptr;
  if (!path) return error_object(compiler ? message : "the fake has no compiler", error);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return error_object(dlerror(), error);
  Object *l = make(LIBRARY);
  l->library = handle;
  return l;
}

Object *create(Object *c) {
  const std::string &n = c->text;
  Kind k = n == "NSAutoreleasePool" ? POOL : n == "MTLCompileOptions" ? OPTIONS : n == "MTLFunctionConstantValues" ? VALUES : n == "MTLResidencySetDescriptor" ? RESIDENCY_DESCRIPTOR : FREED;
  if (k == FREED) fail("+[%s new]: this class is not known here", n.c_str());
  Object *o = make(k);
  if (k == POOL) {
    o->thread = pthread_self();
    pools.push_back(o);
  }
  return o;
}

void dispatch(Object *e, Size grid, Size group) {
  if (e->ended) fail("a dispatch after endEncoding");
  if (!e->pipeline) fail("a dispatch without a pipeline");
  unsigned long n = group.w * group.h * group.d;
  if (n == 0 || n > 1024) fail("%s: %lu threads in a threadgroup", e->pipeline->text.c_str(), n);
  if (grid.w * grid.h * grid.d == 0) fail("%s: an empty grid", e->pipeline->text.c_str());
  counters.dispatches++;
  e->owner->work.push_back(Dispatch{e->pipeline, e->bindings, {(unsigned)grid.w, (unsigned)grid.h, (unsigned)grid.d}, {(unsigned)group.w, (unsigned)group.h, (unsigned)group.d}, e->phase});
}

struct Result { uintptr_t i; double d; };
Result answer(uintptr_t i) { return Result{i, 0}; }
Result answer(Object *o) { return Result{(uintptr_t)o, 0}; }

Result message(Object *o, Sel *s, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
  counters.calls++;
  if (o->kind == FREED) fail("-[%s] to a freed object", s->text.c_str());
  switch (s->id) {
    case S_new_: need(o, CLASS, s); return answer(create(o));
    case S_release_: release(o); return answer(0ul);
    case S_retain: o->count++; return answer(o);
    case S_drain: {
      need(o, POOL, s);
      if (!pthread_equal(o->thread, pthread_self()) || pools.empty() || pools.back() != o) fail("a pool drained on another thread, or out of order");
      pools.pop_back();
      for (Object *p : o->pooled) release(p);
      release(o);
      return answer(0ul);
    }
    case S_string: {
      need(o, CLASS, s);
      Object *t = make(STRING);
      t->text = (const char *)a;
      return answer(autoreleased(t));
    }
    case S_utf8: need(o, STRING, s); return answer((uintptr_t)o->text.c_str());
    case S_description: {
      need(o, ERROR, s);
      Object *t = make(STRING);
      t->text = o->text;
      return answer(autoreleased(t));
    }
    case S_name: {
      need(o, DEVICE, s);
      Object *t = make(STRING);
      t->text = "Fake Metal on the CPU";
      return answer(autoreleased(t));
    }
    case S_supportsFamily: need(o, DEVICE, s); return answer((uintptr_t)((a >= 1001 && a <= 1000 + config.family) || a == 5001));
    case S_workingSet: need(o, DEVICE, s); return answer(config.working_set);
    case S_maxBuffer: need(o, DEVICE, s); return answer(config.max_buffer);
    case S_unified: need(o, DEVICE, s); return answer(1ul);
    case S_responds: return answer((uintptr_t)(((Sel *)a)->id >= 0 && (((Sel *)a)->id != S_newResidency || config.residency)));
    case S_setLanguage: need(o, OPTIONS, s); o->language = a; return answer(0ul);
    case S_setFast: need(o, OPTIONS, s); o->fast_math = (a & 0xFF) != 0; return answer(0ul);
    case S_newLibrary: need(o, DEVICE, s); return answer(library(((Object *)a)->text.c_str(), (Object *)b, c));
    case S_newFunction: need(o, LIBRARY, s); return answer(function(o, (Object *)a, nullptr, 0));
    case S_newFunctionValues: need(o, LIBRARY, s); return answer(function(o, (Object *)a, (Object *)b, c));
    case S_setConstant:
      need(o, VALUES, s);
      if (b != 33) fail("a function constant of type %lu, not uint", b);
      o->values[(unsigned)c] = *(uint32_t *)a;
      return answer(0ul);
    case S_newPipeline: {
      need(o, DEVICE, s);
      Object *f = (Object *)a;
      if (!f || f->kind != FUNCTION) fail("a pipeline of no function");
      Object *p = make(PIPELINE);
      p->text = f->text, p->library = f->library, p->kernel = f->kernel, p->values = f->values;
      return answer(p);
    }
    case S_maxThreads: need(o, PIPELINE, s); return answer(1024ul);
    case S_width: need(o, PIPELINE, s); return answer(32ul);
    case S_newBuffer: need(o, DEVICE, s); return answer(new_buffer(a));
    case S_newNoCopy: {
      need(o, DEVICE, s);
      unsigned long page = (unsigned long)getpagesize();
      if (a % page || b % page || b == 0) fail("newBufferWithBytesNoCopy: %lx and %lu bytes are not whole pages", a, b);
      if (b > config.max_buffer) return answer(0ul);
      Object *x = make(BUFFER);
      x->data = (char *)a, x->length = b;
      x->adopted = true;
      if (backend) backend->adopt(x->data, b);
      counters.nocopy_bytes += b;
      return answer(x);
    }
    case S_contents: need(o, BUFFER, s); return answer((uintptr_t)o->data);
    case S_newQueue: need(o, DEVICE, s); return answer(make(QUEUE));
    case S_commandBuffer: need(o, QUEUE, s); return answer(autoreleased(make(COMMANDS)));
    case S_encoder: {
      need(o, COMMANDS, s);
      if (a != 1) fail("an encoder of dispatch type %lu, not concurrent", a);
      Object *e = make(ENCODER);
      e->owner = o;
      return answer(autoreleased(e));
    }
    case S_setPipeline:
      need(o, ENCODER, s);
      if (!a || ((Object *)a)->kind != PIPELINE) fail("setComputePipelineState: of something else");
      o->pipeline = (Object *)a;
      return answer(0ul);
    case S_setBuffers: {
      need(o, ENCODER, s);
      if (d == 0 || c + d > 31) fail("setBuffers: %lu from index %lu", d, c);
      for (unsigned long i = 0; i < d; i++) {
        Object *x = ((Object **)a)[i];
        unsigned long offset = ((unsigned long *)b)[i];
        if (!x || x->kind != BUFFER) fail("setBuffers: something else for index %lu", c + i);
        if (offset >= x->length || offset % 4) fail("setBuffers: offset %lu of %lu bytes for index %lu", offset, x->length, c + i);
        o->bindings[(unsigned)(c + i)] = Binding{x, offset};
      }
      return answer(0ul);
    }
    case S_barrier:
      need(o, ENCODER, s);
      if ((long)counters.barriers++ != config.skip_barrier) o->phase++;
      return answer(0ul);
    case S_endEncoding: need(o, ENCODER, s); o->ended = true; return answer(0ul);
    case S_commit: {
      if (o->kind == RESIDENCY) {
        o->committed = true;
        return answer(0ul);
      }
      need(o, COMMANDS, s);
      if (o->committed) fail("a command buffer committed twice");
      std::lock_guard<std::mutex> l(lock);
      static bool started = false;
      if (!started) {
        pthread_t t;
        pthread_create(&t, 0, gpu, nullptr);
        started = true;
      }
      counters.commits++;
      counters.most_in_flight = std::max(counters.most_in_flight, ++in_flight);
      o->committed = true, o->status = 2;
      queue.push_back(o);
      changed.notify_all();
      return answer(0ul);
    }
    case S_wait: {
      need(o, COMMANDS, s);
      if (!o->committed) fail("a wait for a command buffer that was not committed");
      std::unique_lock<std::mutex> l(lock);
      while (o->status < 4) changed.wait(l);
      return answer(0ul);
    }
    case S_status: need(o, COMMANDS, s); return answer((uintptr_t)o->status);
    case S_error: {
      need(o, COMMANDS, s);
      if (o->status != 5) return answer(0ul);
      Object *e = make(ERROR);
      e->text = o->text;
      return answer(autoreleased(e));
    }
    case S_gpuStart: need(o, COMMANDS, s); return Result{0, o->start};
    case S_gpuEnd: need(o, COMMANDS, s); return Result{0, o->end};
    case S_newResidency: need(o, DEVICE, s); return answer(make(RESIDENCY));
    case S_setCapacity: need(o, RESIDENCY_DESCRIPTOR, s); return answer(0ul);
    case S_addAllocation:
      need(o, RESIDENCY, s);
      if (!a || ((Object *)a)->kind != BUFFER) fail("addAllocation: of something else");
      o->pooled.push_back((Object *)a);
      o->committed = false;
      return answer(0ul);
    case S_requestResidency:
      need(o, RESIDENCY, s);
      if (!o->committed) fail("requestResidency before commit");
      for (Object *b : o->pooled) o->length += b->length;
      counters.resident_bytes += o->length;
      return answer(0ul);
    case S_endResidency:
      need(o, RESIDENCY, s);
      for (Object *b : o->pooled)
        if (b->kind != BUFFER) fail("endResidency after a buffer of the set was released");
      counters.resident_bytes -= o->length;
      o->length = 0;
      return answer(0ul);
    case S_addResidency:
      need(o, QUEUE, s);
      if (!a || ((Object *)a)->kind != RESIDENCY) fail("addResidencySet: of something else");
      ((Object *)a)->owner = o;
      return answer(0ul);
    case S_removeResidency:
      need(o, QUEUE, s);
      if (!a || ((Object *)a)->owner != o) fail("removeResidencySet: of a set that the queue has not");
      ((Object *)a)->owner = nullptr;
      return answer(0ul);
  }
  fail("-[%s %s]: unrecognised selector", kind_names[o->kind], s->text.c_str());
}
}  // namespace

#pragma clang diagnostic ignored "-Wreturn-type-c-linkage"
extern "C" {
__attribute__((visibility("default"))) Sel *sel_registerName(const char *text) {
  static std::map<std::string, Sel *> known;
  std::lock_guard<std::mutex> l(lock);
  Sel *&s = known[text];
  if (!s) {
    s = new Sel{text, -1};
    static const char *names[] = {
#define X(id, text) text,
        SELECTORS(X)
#undef X
    };
    for (int i = 0; i < S_count; i++)
      if (s->text == names[i]) s->id = i;
  }
  return s;
}
Object *objc_getClass(const char *text) {
  static std::map<std::string, Object *> known;
  std::lock_guard<std::mutex> l(lock);
  Object *&o = known[text];
  if (!o) {
    o = make(CLASS);
    o->text = text;
  }
  return o;
}
Object *MTLCreateSystemDefaultDevice() { return make(DEVICE); }

// On x86-64 structs passed by value lie on the stack whatever the other arguments are, and an integer and a double come back in the
// registers of either: one function serves all selectors. On arm64 the structs are pointers; doubles need d0.
#if defined(__x86_64__)
Result objc_msgSend(Object *o, Sel *s, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, Size grid, Size group) {
  if (!o) return answer(0ul);
  if (s->id != S_dispatch) return message(o, s, a, b, c, d);
  counters.calls++;
  need(o, ENCODER, s);
  dispatch(o, grid, group);
  return answer(0ul);
}
#else
uintptr_t objc_msgSend(Object *o, Sel *s, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
  Result r = answer(0ul);
  if (o && s->id == S_dispatch) need(o, ENCODER, s), counters.calls++, dispatch(o, *(Size *)a, *(Size *)b);
  else if (o) r = message(o, s, a, b, c, d);
#if defined(__aarch64__)
  register double d0 asm("d0") = r.d;
  asm volatile("" : : "w"(d0));
#endif
  return r.i;
}
#endif

void fake_configure(const Configuration *c) {
  std::lock_guard<std::mutex> l(lock);
  config = *c;
  state = c->seed * 0x9E3779B97F4A7C15ull + 1;
  counters = Counters{};
}
void fake_counters(Counters *c) { *c = counters; }
void fake_set_backend(const void *b) { backend = (const Backend *)b; }
void fake_set_compiler(const char *(*f)(const char *, char *, long)) { compiler = f; }
}
