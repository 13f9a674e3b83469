// CoreFoundation and IOKit, as far as package mac calls them. held counts assertions, strings those not given back.
#include <stdint.h>
#include <string.h>
#include <set>
#include <string>

extern "C" {
int held, strings, refuse;
std::set<uint32_t> ids;
char last[256];
std::string *CFStringCreateWithCString(void *allocator, const char *text, uint32_t encoding) {
  if (allocator || encoding != 0x08000100) return nullptr;
  strings++;
  return new std::string(text);
}
void CFRelease(std::string *s) { strings--, delete s; }
int32_t IOPMAssertionCreateWithName(std::string *kind, uint32_t level, std::string *name, uint32_t *id) {
  if (refuse || *kind != "PreventUserIdleSystemSleep" || level != 255) return (int32_t)0xE00002C2;
  strncpy(last, name->c_str(), sizeof last - 1);
  *id = (uint32_t)(0xFFFF0000 + ids.size());
  ids.insert(*id);
  held++;
  return 0;
}
int32_t IOPMAssertionRelease(uint32_t id) {
  if (!ids.erase(id)) return (int32_t)0xE00002C2;
  held--;
  return 0;
}
}
