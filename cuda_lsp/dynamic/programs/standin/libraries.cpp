// Shared libraries that a program's own build made, and that are made anew beside the program for the check
// (`build.py`): what the program opens by the path or name of an old one is the new one, and what a library
// registers goes by a name that tells the library, because two of them may have kernels of one name.
//
// CLSP_FOLDER: where they lie, each in a folder that is its number, with a slash at the end; CLSP_LIBRARIES: the
// paths of the old ones. Both are defined in front of this text.

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <string>

namespace {

// The number of the library that an address lies in; 0: it lies in the program.
int library_of(const void* address) {
    Dl_info info;
    const size_t length = strlen(CLSP_FOLDER);
    if (!dladdr(address, &info) || !info.dli_fname || strncmp(info.dli_fname, CLSP_FOLDER, length)) return 0;
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
    const char* const paths[] = {CLSP_LIBRARIES nullptr};
    for (int k = 0; paths[k]; ++k) {
        std::string folder(paths[k], file_of(paths[k]));
        const char* real = there ? given : realpath((folder + file_of(name)).c_str(), beside);
        if (real && !strcmp(real, paths[k])) return CLSP_FOLDER + std::to_string(k + 1) + "/" + file_of(paths[k]);
    }
    return name;
}

}  // namespace

extern "C" void* __real_dlopen(const char*, int) __attribute__((weak));
extern "C" __attribute__((visibility("default"))) void* __wrap_dlopen(const char* name, int mode) {
    return __real_dlopen(name ? meant(name).c_str() : nullptr, mode);
}
