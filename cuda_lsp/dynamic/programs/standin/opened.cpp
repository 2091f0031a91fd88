// Shared libraries that a Python program opens on a machine without a GPU. One of which the check knows the
// build is made anew, with the stand-in runtime in it (`borrowed.cpp`), and the new one is opened in its place.
// Behind `driver.cpp`, in the library that is preloaded into the interpreter.

#include <limits.h>

namespace {

std::map<std::string, int>& opened() {  // the new libraries, and their numbers
    static std::map<std::string, int> all;
    return all;
}

// What is to be opened when `name` is asked for. The answer has a line for each new library, its number and its
// path, the one that was asked for last; none, when the old one is to stay.
const char* meant(const char* name) {
    static thread_local char chosen[PATH_MAX];
    if (channel < 0 || !name || !strchr(name, '/') || !realpath(name, chosen)) return name;
    std::lock_guard<std::recursive_mutex> guard(turn);
    std::string answer = asked(LIBRARY, chosen, strlen(chosen)), path;
    for (size_t at = 0, end; (end = answer.find('\n', at)) != std::string::npos; at = end + 1) {
        size_t blank = answer.find(' ', at);
        path = answer.substr(blank + 1, end - blank - 1);
        opened()[path] = atoi(answer.c_str() + at);
    }
    if (path.empty() || path.size() >= sizeof chosen) return name;
    return strcpy(chosen, path.c_str());
}

typedef void* (*Open)(const char*, int);
Open real_open() {
    static Open real = (Open)real_lookup()(RTLD_NEXT, "dlopen");
    return real;
}

}  // namespace

// By a jump, so that who called is still known to the loader.
API void* dlopen(const char* name, int mode) {
    const char* path = meant(name);
    return real_open()(path, mode);
}

// What `borrowed.cpp` asks.
API void clsp_ask(unsigned kind, const void* body, unsigned length, std::string* answer) {
    *answer = asked(kind, body, length);
}
API void clsp_memory(char** from, char** to) {
    connect();
    *from = low, *to = high;
}
API int clsp_library_of(const void* address) {
    Dl_info info;
    if (!dladdr(address, &info) || !info.dli_fname) return 0;
    std::lock_guard<std::recursive_mutex> guard(turn);
    auto found = opened().find(info.dli_fname);
    return found == opened().end() ? 0 : found->second;
}
