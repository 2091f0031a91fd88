// Arrays, textures and surfaces of the stand-in; compiled behind runtime.cpp, as one text with it.
//
// An object's handle is the address of its description in device memory, which the emulator reads there
// (`emulator/images.py`). An array is pitched device memory; its layers and slices follow one another.

namespace {

struct Description {
    unsigned long long mark, data, pitch;  // bytes from row to row
    unsigned width, height, depth;         // elements; 0: it has no such side
    unsigned channels, bits, kind;         // kind: cudaChannelFormatKind
    unsigned modes[3];                     // cudaTextureAddressMode
    unsigned linear, relative, scaled;     // filtering; coordinates from 0 to 1; integers read as 0 … 1
    float border[4];
};

struct Array {
    char* data;
    size_t pitch;
    cudaChannelFormatDesc format;
    cudaExtent extent;
    unsigned flags;

    size_t element() const { return (format.x + format.y + format.z + format.w) / 8; }
    size_t rows() const { return extent.height ? extent.height : 1; }
    char* at(size_t x, size_t y, size_t z) const { return data + (z * rows() + y) * pitch + x; }
};

const Array* array_of(cudaArray_const_t handle) { return reinterpret_cast<const Array*>(handle); }

bool described(Description* out, const cudaResourceDesc* resource) {
    memset(out, 0, sizeof *out);
    out->mark = 0x70736c2d61647563ull;  // cuda-lsp
    cudaChannelFormatDesc format;
    if (resource->resType == cudaResourceTypeArray) {
        const Array* array = array_of(resource->res.array.array);
        format = array->format;
        out->data = (unsigned long long)array->data, out->pitch = array->pitch;
        out->width = array->extent.width, out->height = array->extent.height, out->depth = array->extent.depth;
    } else if (resource->resType == cudaResourceTypeLinear) {
        const auto& linear = resource->res.linear;
        format = linear.desc;
        out->data = (unsigned long long)linear.devPtr, out->pitch = linear.sizeInBytes;
        out->width = linear.sizeInBytes * 8 / (format.x + format.y + format.z + format.w);
    } else if (resource->resType == cudaResourceTypePitch2D) {
        const auto& pitched = resource->res.pitch2D;
        format = pitched.desc;
        out->data = (unsigned long long)pitched.devPtr, out->pitch = pitched.pitchInBytes;
        out->width = pitched.width, out->height = pitched.height;
    } else {
        return false;
    }
    out->channels = !!format.x + !!format.y + !!format.z + !!format.w;
    out->bits = format.x, out->kind = format.f;
    return true;
}

cudaError_t placed(const Description& description, unsigned long long* handle) {
    void* place = nullptr;
    cudaError_t error = allocate(&place, sizeof description);
    if (error == cudaSuccess) memcpy(place, &description, sizeof description);
    *handle = (unsigned long long)place;
    return error;
}

}  // namespace

API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
    return cudaChannelFormatDesc{x, y, z, w, kind};
}
API cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* out, cudaArray_const_t array) {
    *out = array_of(array)->format;
    return cudaSuccess;
}
API cudaError_t cudaMalloc3DArray(cudaArray_t* out, const cudaChannelFormatDesc* format, cudaExtent extent,
                                  unsigned flags) {
    Array* made = new Array{nullptr, 0, *format, extent, flags};
    made->pitch = (extent.width * made->element() + 511) / 512 * 512;
    cudaError_t error = allocate((void**)&made->data, made->pitch * made->rows() * (extent.depth ? extent.depth : 1));
    *out = reinterpret_cast<cudaArray_t>(made);
    return error;
}
API cudaError_t cudaMallocArray(cudaArray_t* out, const cudaChannelFormatDesc* format, size_t width, size_t height,
                                unsigned flags) {
    return cudaMalloc3DArray(out, format, cudaExtent{width, height, 0}, flags);
}
API cudaError_t cudaFreeArray(cudaArray_t handle) {
    if (!handle) return cudaSuccess;
    Array* array = reinterpret_cast<Array*>(handle);
    cudaError_t error = release(array->data);
    delete array;
    return error;
}
API cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t handle) {
    const Array* array = array_of(handle);
    if (format) *format = array->format;
    if (extent) *extent = array->extent;
    if (flags) *flags = array->flags;
    return cudaSuccess;
}

API cudaError_t cudaMemcpy2DToArray(cudaArray_t t, size_t x, size_t y, const void* s, size_t pitch, size_t w, size_t h,
                                    cudaMemcpyKind) {
    return copy_rows(array_of(t)->at(x, y, 0), array_of(t)->pitch, s, pitch, w, h);
}
API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t t, size_t x, size_t y, const void* s, size_t pitch, size_t w,
                                         size_t h, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2DToArray(t, x, y, s, pitch, w, h, kind);
}
API cudaError_t cudaMemcpy2DFromArray(void* t, size_t pitch, cudaArray_const_t s, size_t x, size_t y, size_t w, size_t h,
                                      cudaMemcpyKind) {
    return copy_rows(t, pitch, array_of(s)->at(x, y, 0), array_of(s)->pitch, w, h);
}
API cudaError_t cudaMemcpy2DFromArrayAsync(void* t, size_t pitch, cudaArray_const_t s, size_t x, size_t y, size_t w,
                                           size_t h, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2DFromArray(t, pitch, s, x, y, w, h, kind);
}
API cudaError_t cudaMemcpyToArray(cudaArray_t handle, size_t x, size_t y, const void* s, size_t n, cudaMemcpyKind) {
    const Array* t = array_of(handle);  // bytes that fill row after row
    size_t row = t->extent.width * t->element();
    for (const char* from = (const char*)s; n; ++y, x = 0) {
        size_t part = n < row - x ? n : row - x;
        memcpy(t->at(x, y, 0), from, part);
        from += part, n -= part;
    }
    return cudaSuccess;
}
API cudaError_t cudaMemcpyFromArray(void* t, cudaArray_const_t handle, size_t x, size_t y, size_t n, cudaMemcpyKind) {
    const Array* s = array_of(handle);
    size_t row = s->extent.width * s->element();
    for (char* to = (char*)t; n; ++y, x = 0) {
        size_t part = n < row - x ? n : row - x;
        memcpy(to, s->at(x, y, 0), part);
        to += part, n -= part;
    }
    return cudaSuccess;
}
API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
    const Array *s = array_of(p->srcArray), *t = array_of(p->dstArray);
    // Where an array takes part, x counts its elements; else bytes.
    size_t element = s ? s->element() : t ? t->element() : 1;
    for (size_t z = 0; z < p->extent.depth; ++z) {
        const cudaPos &from = p->srcPos, &to = p->dstPos;
        const char* source = s ? s->at(from.x * element, from.y, from.z + z)
                               : (char*)p->srcPtr.ptr + ((from.z + z) * p->srcPtr.ysize + from.y) * p->srcPtr.pitch +
                                     from.x;
        char* target = t ? t->at(to.x * element, to.y, to.z + z)
                         : (char*)p->dstPtr.ptr + ((to.z + z) * p->dstPtr.ysize + to.y) * p->dstPtr.pitch + to.x;
        cudaError_t error = copy_rows(target, t ? t->pitch : p->dstPtr.pitch, source, s ? s->pitch : p->srcPtr.pitch,
                                      p->extent.width * element, p->extent.height);
        if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
}
API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* given, cudaStream_t stream) {
    cudaMemcpy3DParms p = *given;
    return in_turn(stream, cudaGraphNodeTypeMemcpy, [=] { return cudaMemcpy3D(&p); });
}

API cudaError_t cudaCreateTextureObject(cudaTextureObject_t* out, const cudaResourceDesc* resource,
                                        const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    Description made;
    if (view || !described(&made, resource)) return said(cudaErrorNotSupported);
    for (int k = 0; k < 3; ++k) made.modes[k] = texture->addressMode[k];
    made.linear = texture->filterMode == cudaFilterModeLinear;
    made.relative = texture->normalizedCoords != 0;
    made.scaled = texture->readMode == cudaReadModeNormalizedFloat;
    memcpy(made.border, texture->borderColor, sizeof made.border);
    return placed(made, out);
}
API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) { return release((void*)object); }
API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* out, const cudaResourceDesc* resource) {
    Description made;
    return described(&made, resource) ? placed(made, out) : said(cudaErrorNotSupported);
}
API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) { return release((void*)object); }
