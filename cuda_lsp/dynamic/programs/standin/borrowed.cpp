// In front of `runtime.cpp` in a library of its own, which those are linked with that a Python program opens on a
// machine without a GPU: the connection to the emulator's process is that of the preloaded driver (`opened.cpp`).

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mutex>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

extern "C" void clsp_ask(unsigned kind, const void* body, unsigned length, std::string* answer);
extern "C" void clsp_memory(char** low, char** high);
extern "C" int clsp_library_of(const void* address);

namespace {

enum Kind : unsigned { ALLOCATE = 1, RELEASE, VARIABLE, PARAMETERS, LAUNCH, EXTENT, DEVICE };

std::recursive_mutex turn;
char* low = nullptr;
char* high = nullptr;

[[noreturn]] void lost(const char* what) {
    fprintf(stderr, "cuda-lsp: %s\n", what);
    _exit(70);
}

__attribute__((constructor)) void connect() { clsp_memory(&low, &high); }

std::string asked(unsigned kind, const void* body, unsigned length) {
    std::string answer;
    clsp_ask(kind, body, length, &answer);
    return answer;
}

// What is registered for `host`, as the check knows it (`ptx/names.py`).
std::string known_as(const char* name, const void* host) {
    return std::string(name) + "$library" + std::to_string(clsp_library_of(host));
}

}  // namespace
