// Shared libraries that a program's own build made, and that are made anew beside the program for the check
// (`build.py`): what the program opens by the path or name of an old one is the new one, and what a library
// registers goes by a name that tells the library, because two of them may have kernels of one name.
//
// Where they lie, each in a folder that is its number, with a slash at the end, and the paths of the old ones are
// a text of their own for each program (`build.py`): all else is compiled once.

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <string>

extern "C" __attribute__((visibility("hidden"))) const char __cuda_lsp_folder[];
extern "C" __attribute__((visibility("hidden"))) const char* const __cuda_lsp_libraries[];

namespace {

// The number of the library that an address lies in; 0: it lies in the program.
int library_of(const void* address) {
    Dl_info info;
    const size_t length = strlen(__cuda_lsp_folder);
    if (!dladdr(address, &info) || !info.dli_fname || strncmp(info.dli_fname, __cuda_lsp_folder, length)) return 0;
    return atoi(info.dli_fname + length);
}

// What is registered for `host`, as the check knows it (`ptx/names.py`).
std::string known_as(const char* name, const void* host) {
    int number = library_of(host);
    return number ? std::string(name) + "$library" + std::to_string(number) : name;
}

const char* file_of(const char* path) {
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// A path that leads to an old library means the new one; so does one that leads to nothing, as of a program that
// looks beside itself, when there is such a file beside an old library.
std::string meant(const char* name) {
    char given[PATH_MAX], beside[PATH_MAX];
    bool there = strchr(name, '/') && realpath(name, given);
    for (int k = 0; __cuda_lsp_libraries[k]; ++k) {
        std::string folder(__cuda_lsp_libraries[k], file_of(__cuda_lsp_libraries[k]));
        const char* real = there ? given : realpath((folder + file_of(name)).c_str(), beside);
        if (!real || strcmp(real, __cuda_lsp_libraries[k])) continue;
        return __cuda_lsp_folder + std::to_string(k + 1) + "/" + file_of(__cuda_lsp_libraries[k]);
    }
    return name;
}

}  // namespace

extern "C" void* __real_dlopen(const char*, int) __attribute__((weak));
extern "C" __attribute__((visibility("default"))) void* __wrap_dlopen(const char* name, int mode) {
    return __real_dlopen(name ? meant(name).c_str() : nullptr, mode);
}
