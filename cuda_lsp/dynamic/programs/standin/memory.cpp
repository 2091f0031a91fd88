// The device's memory, as the emulator's process gives it out.

namespace {

void* allocated(size_t size) {
    unsigned long long bytes = size;
    std::string answer = asked(ALLOCATE, &bytes, sizeof bytes);
    unsigned long long address;
    memcpy(&address, answer.data(), sizeof address);
    return reinterpret_cast<void*>(address);
}

bool released(void* pointer) {
    unsigned long long address = reinterpret_cast<unsigned long long>(pointer);
    return !asked(RELEASE, &address, sizeof address)[0];
}

bool on_device(const void* pointer) { return low && pointer >= low && pointer < high; }

}  // namespace
