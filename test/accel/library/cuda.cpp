// The fake Metal's work on an NVIDIA GPU, by its driver: memory is the host's, pinned and mapped, so that both see it under one address; a
// library is the PTX that was built of the same source; a dispatch is a launch, waited for. For correctness: its speed says nothing.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <string>

namespace {
typedef int Result;
typedef void *Handle;
typedef unsigned long long Address;
struct Driver {
  Result (*init)(unsigned);
  Result (*device)(int *, int);
  Result (*retain)(Handle *, int);
  Result (*current)(Handle);
  Result (*load)(Handle *, const void *);
  Result (*function)(Handle *, Handle, const char *);
  Result (*global)(Address *, size_t *, Handle, const char *);
  Result (*allocate)(void **, size_t, unsigned);
  Result (*adopt)(void *, size_t, unsigned);
  Result (*free)(void *);
  Result (*unadopt)(void *);
  Result (*address)(Address *, void *, unsigned);
  Result (*to_device)(Address, const void *, size_t);
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
  Result (*wait)();
  Result (*name)(Result, const char **);
} cuda;
Handle context;
std::string folder;

[[noreturn]] void fail(const char *what, Result r) {
  const char *text = "?";
  if (cuda.name) cuda.name(r, &text);
  fprintf(stderr, "cuda: %s: %s (%d)\n", what, text ? text : "?", r);
  abort();
}
void need(const char *what, Result r) {
  if (r) fail(what, r);
}

struct Library { Handle module; };
struct Function {
  Handle module, function;
  unsigned values[16], mask;
  std::string name;
};

void same_address(void *p) {
  Address at = 0;
  need("the device's address of pinned memory", cuda.address(&at, p, 0));
  if (at != (Address)p) {
    fprintf(stderr, "cuda: pinned memory has another address on the device\n");
    abort();
  }
}

void *allocate(unsigned long n) {
  need("context", cuda.current(context));
  void *p = nullptr;
  need("pinned memory", cuda.allocate(&p, n, 1 | 2));  // portable, mapped
  same_address(p);
  return p;
}
void adopt(void *p, unsigned long n) {
  need("context", cuda.current(context));
  need("pinning a mapping", cuda.adopt(p, n, 1 | 2));
  same_address(p);
}

void release(void *p, int adopted) {
  need("context", cuda.current(context));
  need("giving pinned memory back", adopted ? cuda.unadopt(p) : cuda.free(p));
}

void *library(const char *source, char *message, long bytes) {
  uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a, as cpurun.Mark
  for (const char *c = source; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3ull;
  char name[32];
  snprintf(name, sizeof name, "/%016llx.ptx", (unsigned long long)h);
  FILE *f = fopen((folder + name).c_str(), "r");
  if (!f) {
    snprintf(message, (size_t)bytes, "%s%s was not built", folder.c_str(), name);
    return nullptr;
  }
  std::string text;
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) text.append(block, n);
  fclose(f);
  need("context", cuda.current(context));
  Library *l = new Library;
  need(name, cuda.load(&l->module, text.c_str()));
  return l;
}

void *function(void *library, const char *name, const unsigned *values, unsigned mask) {
  Function *f = new Function;
  f->module = ((Library *)library)->module, f->mask = mask, f->name = name;
  memcpy(f->values, values, sizeof f->values);
  need("context", cuda.current(context));
  if (cuda.function(&f->function, f->module, (std::string("mslk_") + name).c_str())) return nullptr;
  return f;
}

int run(void *function, void **arguments, const unsigned *grid, const unsigned *group) {
  Function *f = (Function *)function;
  need("context", cuda.current(context));
  for (unsigned i = 0; i < 16; i++) {
    Address at = 0;
    size_t n = 0;
    if (!(f->mask >> i & 1) || cuda.global(&at, &n, f->module, ("mslc_" + std::to_string(i)).c_str())) continue;
    need("a function constant", cuda.to_device(at, &f->values[i], 4));
  }
  void *parameters[] = {arguments};
  need(f->name.c_str(), cuda.launch(f->function, grid[0], grid[1], grid[2], group[0], group[1], group[2], 0, nullptr, parameters, nullptr));
  need(f->name.c_str(), cuda.wait());
  return 0;
}

struct Backend {
  void *(*allocate)(unsigned long);
  void (*adopt)(void *, unsigned long);
  void (*release)(void *, int);
  void *(*library)(const char *, char *, long);
  void *(*function)(void *, const char *, const unsigned *, unsigned);
  int (*run)(void *, void **, const unsigned *, const unsigned *);
};
}  // namespace

// cuda_backend opens the driver and is what fake_set_backend takes; null when there is no driver or device. PTX lies in at.
extern "C" const void *cuda_backend(const char *at) {
  static Backend b = {allocate, adopt, release, library, function, run};
  folder = at;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!driver) return nullptr;
  struct { void *to; const char *name; } all[] = {
      {&cuda.init, "cuInit"}, {&cuda.device, "cuDeviceGet"}, {&cuda.retain, "cuDevicePrimaryCtxRetain"}, {&cuda.current, "cuCtxSetCurrent"},
      {&cuda.load, "cuModuleLoadData"}, {&cuda.function, "cuModuleGetFunction"}, {&cuda.global, "cuModuleGetGlobal_v2"},
      {&cuda.allocate, "cuMemHostAlloc"}, {&cuda.adopt, "cuMemHostRegister_v2"}, {&cuda.free, "cuMemFreeHost"}, {&cuda.unadopt, "cuMemHostUnregister"}, {&cuda.address, "cuMemHostGetDevicePointer_v2"},
      {&cuda.to_device, "cuMemcpyHtoD_v2"}, {&cuda.launch, "cuLaunchKernel"}, {&cuda.wait, "cuCtxSynchronize"}, {&cuda.name, "cuGetErrorName"}};
  for (auto &f : all)
    if (!(*(void **)f.to = dlsym(driver, f.name))) return nullptr;
  int device = 0;
  if (cuda.init(0) || cuda.device(&device, 0) || cuda.retain(&context, device)) return nullptr;
  return &b;
}
