/* The one prelude of all device code: kernels are written once and built as
 *
 *   OpenCL C     by the driver, from source;
 *   CUDA         by NVRTC, nvcc or clang (target nvptx64);
 *   HIP          by hiprtc, hipcc or clang (target amdgcn), with or without the runtime headers;
 *   C++          by any compiler for the host, one item at a time (for checking the text and its meaning).
 *
 * A dialect defines the words below and nothing else; kernels use only these words and plain C.
 *
 *   KERNEL(name)(args) { … }   an entry point that returns nothing
 *   DEVICE                     a helper function
 *   GLOBAL, SHARED, RESTRICT   address spaces and aliasing
 *   u32 u64 f32x4              integers; four floats with `+`, `float *` and .x .y .z .w
 *   ITEM, ITEMS                number of this work item and of all, as u64
 *   LOCAL_ITEM, GROUP          number within the group and of the group, as u32
 *   UNROLL                     before a loop of constant length: its arrays become registers
 *   BARRIER()                  all items of the group; shared memory is visible afterwards
 *   ATOMIC_ADD(p, v)           relaxed add to a u32 in device memory
 *   FMA32(a, b, c) FMA64(…)    one rounding
 *   DOT4(a, b, c)              c + the dot product of the four signed bytes of a and of b, wrapping
 *   HALF_IN, LOAD_HALF(p, i)   array of half for reading; element i as float
 *   HALF_OUT, STORE_HALF(p, i, x)  array of half for writing; stores the float x, rounded to nearest
 *   half2_t, HALF2(a, b), HALF2_FMA(a, b, c), HALF2_STORE_LOW/HIGH(p, i, x)   with HAS_FP16: two halves
 *
 * Defined by whoever builds:
 *   HAS_FP64, HAS_FP16         (OpenCL only) the device lists the extension; macros of compilers are not
 *                              trusted, some define them for devices that lack the type
 *   CONTIGUOUS                 items work on contiguous shares (CPUs: caches and prefetchers follow one
 *                              item) instead of interleaved ones (GPUs: neighbours load together)
 *   CHAINS                     independent arithmetic chains per item
 */

#define GROUP_SIZE 256 /* most items in a group; exactly this many for matrix kernels */

#ifndef CHAINS
#define CHAINS 8
#endif

/* ---------------------------------------------------------------------------------------- OpenCL C */
#if defined(__OPENCL_C_VERSION__) || defined(__OPENCL_VERSION__)

#ifdef HAS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define UNROLL _Pragma("unroll")
typedef uint u32;
typedef ulong u64;
typedef float4 f32x4;

#define KERNEL(name) __kernel void name
#define KERNEL_OF_GROUPS(name) __kernel __attribute__((reqd_work_group_size(GROUP_SIZE, 1, 1))) void name
#define DEVICE
#define GLOBAL __global
#define SHARED __local
#define RESTRICT restrict

#define ITEM ((u64)get_global_id(0))
#define ITEMS ((u64)get_global_size(0))
#define LOCAL_ITEM ((u32)get_local_id(0))
#define GROUP ((u32)get_group_id(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define ATOMIC_ADD(p, v) ((void)atomic_add((volatile __global uint *)(p), (uint)(v)))

#define FMA32(a, b, c) fma((float)(a), (float)(b), (float)(c))
#define FMA64(a, b, c) fma((double)(a), (double)(b), (double)(c))

#ifdef __opencl_c_integer_dot_product_input_4x8bit_packed
#define DOT4(a, b, c) ((int)((uint)(c) + (uint)dot_4x8packed_ss_int((uint)(a), (uint)(b))))
#else
DEVICE int dot4_bytes(char4 a, char4 b)
{
    return (int)a.x * b.x + (int)a.y * b.y + (int)a.z * b.z + (int)a.w * b.w;
}
#define DOT4(a, b, c) ((int)((uint)(c) + (uint)dot4_bytes(as_char4(a), as_char4(b))))
#endif

/* vload_half and vstore_half are core: no fp16 arithmetic is needed to read and write halves. */
#define HALF_IN __global const half *
#define HALF_OUT __global half *
#define LOAD_HALF(p, i) vload_half((i), (p))
#define STORE_HALF(p, i, x) vstore_half_rte((x), (i), (p))

#ifdef HAS_FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef half2 half2_t;
#define HALF2(a, b) ((half2)(convert_half_rte((float)(a)), convert_half_rte((float)(b))))
#define HALF2_FMA(a, b, c) fma((a), (b), (c))
#define HALF2_STORE_LOW(p, i, v) ((p)[i] = (v).x)
#define HALF2_STORE_HIGH(p, i, v) ((p)[i] = (v).y)
#endif

#else /* ------------------------------------------------------------------------- all C++ dialects */

typedef unsigned int u32;
typedef unsigned long long u64;

#define HAS_FP64 1
#define GLOBAL
#define RESTRICT __restrict__

#if defined(__HIP__) || defined(__AMDGCN__) || defined(__CUDACC_RTC__) || defined(__CUDACC__) || defined(__CUDA__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

#if defined(__HIP__) || defined(__AMDGCN__) /* ------------------------------------------------- HIP */

#if !defined(__HIPCC_RTC__) && !defined(HIP_INCLUDE_HIP_HIP_RUNTIME_H)
/* clang without the HIP headers */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#endif
#define DEVICE static __device__ inline
#define SHARED __shared__
#define KERNEL(name) extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(1, GROUP_SIZE))) void name
#define KERNEL_OF_GROUPS(name) KERNEL(name)

#define LOCAL_ITEM ((u32)__builtin_amdgcn_workitem_id_x())
#define GROUP ((u32)__builtin_amdgcn_workgroup_id_x())
#define ITEM ((u64)GROUP * __builtin_amdgcn_workgroup_size_x() + LOCAL_ITEM)
#define ITEMS ((u64)__builtin_amdgcn_grid_size_x())
#define BARRIER()                                           \
    do {                                                    \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
        __builtin_amdgcn_s_barrier();                       \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); \
    } while (0)
#define ATOMIC_ADD(p, v) \
    ((void)__hip_atomic_fetch_add((u32 *)(p), (u32)(v), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT))

typedef float f32x4 __attribute__((ext_vector_type(4)));
#define FMA32(a, b, c) __builtin_fmaf((a), (b), (c))
#define FMA64(a, b, c) __builtin_fma((a), (b), (c))

#if defined(__gfx1100__) || defined(__gfx1101__) || defined(__gfx1102__) || defined(__gfx1103__) || \
    defined(__gfx1150__) || defined(__gfx1151__) || defined(__gfx1200__) || defined(__gfx1201__)
#define DOT4(a, b, c) __builtin_amdgcn_sudot4(true, (a), true, (b), (c), false)
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx942__) || \
    defined(__gfx950__) || defined(__gfx1011__) || defined(__gfx1012__) || defined(__gfx1030__) || \
    defined(__gfx1031__) || defined(__gfx1032__)
#define DOT4(a, b, c) __builtin_amdgcn_sdot4((a), (b), (c), false)
#endif

#define HALF_IN const _Float16 *
#define HALF_OUT _Float16 *
#define LOAD_HALF(p, i) ((float)(p)[i])
#define STORE_HALF(p, i, x) ((p)[i] = (_Float16)(x))
#define HAS_FP16 1
typedef _Float16 half2_t __attribute__((ext_vector_type(2)));
#define HALF2(a, b) ((half2_t){(_Float16)(a), (_Float16)(b)})
#define HALF2_FMA(a, b, c) __builtin_elementwise_fma((a), (b), (c))
#define HALF2_STORE_LOW(p, i, v) ((p)[i] = (v).x)
#define HALF2_STORE_HIGH(p, i, v) ((p)[i] = (v).y)

#elif defined(__CUDACC_RTC__) || defined(__CUDACC__) || defined(__CUDA__) /* ------------------ CUDA */

#if defined(__clang__) && !defined(__CUDACC_RTC__)
/* clang without the CUDA headers */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#define LOCAL_ITEM ((u32)__nvvm_read_ptx_sreg_tid_x())
#define GROUP ((u32)__nvvm_read_ptx_sreg_ctaid_x())
#define GROUP_ITEMS_ ((u32)__nvvm_read_ptx_sreg_ntid_x())
#define GROUPS_ ((u32)__nvvm_read_ptx_sreg_nctaid_x())
#define ATOMIC_ADD(p, v) ((void)__nvvm_atom_add_gen_i((int *)(p), (int)(v)))
#define FMA32(a, b, c) __builtin_fmaf((a), (b), (c))
#define FMA64(a, b, c) __builtin_fma((a), (b), (c))
#else
#define LOCAL_ITEM ((u32)threadIdx.x)
#define GROUP ((u32)blockIdx.x)
#define GROUP_ITEMS_ ((u32)blockDim.x)
#define GROUPS_ ((u32)gridDim.x)
#define ATOMIC_ADD(p, v) ((void)atomicAdd((u32 *)(p), (u32)(v)))
#define FMA32(a, b, c) fmaf((a), (b), (c))
#define FMA64(a, b, c) fma((a), (b), (c))
#endif
#define DEVICE static __device__ inline
#define SHARED __shared__
#define KERNEL(name) extern "C" __global__ void __launch_bounds__(GROUP_SIZE) name
#define KERNEL_OF_GROUPS(name) KERNEL(name)
#define ITEM ((u64)GROUP * GROUP_ITEMS_ + LOCAL_ITEM)
#define ITEMS ((u64)GROUPS_ * GROUP_ITEMS_)
#define BARRIER() __syncthreads()

#if defined(__clang__) && !defined(__CUDACC_RTC__)
typedef float f32x4 __attribute__((ext_vector_type(4)));
#else
typedef float4 f32x4;
DEVICE f32x4 operator+(f32x4 a, f32x4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
DEVICE f32x4 operator*(float s, f32x4 a)
{
    return make_float4(s * a.x, s * a.y, s * a.z, s * a.w);
}
#endif

#if __CUDA_ARCH__ >= 610
DEVICE int dot4_packed(int a, int b, int c)
{
    int d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
#define DOT4(a, b, c) dot4_packed((a), (b), (c))
#endif

/* Halves travel as their bits, so that no header is needed. */
#define HALF_IN const unsigned short *
#define HALF_OUT unsigned short *
DEVICE float half_to_float(unsigned short h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
DEVICE unsigned short float_to_half(float x)
{
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
#define LOAD_HALF(p, i) half_to_float((p)[i])
#define STORE_HALF(p, i, x) ((p)[i] = float_to_half(x))
#if __CUDA_ARCH__ >= 530
#define HAS_FP16 1
typedef u32 half2_t;
#define HALF2(a, b) ((u32)float_to_half(a) | (u32)float_to_half(b) << 16)
DEVICE half2_t half2_fma(half2_t a, half2_t b, half2_t c)
{
    half2_t d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
#define HALF2_FMA(a, b, c) half2_fma((a), (b), (c))
#define HALF2_STORE_LOW(p, i, v) ((p)[i] = (unsigned short)(v))
#define HALF2_STORE_HIGH(p, i, v) ((p)[i] = (unsigned short)((v) >> 16))
#endif

#else /* ---------------------------------------------------------------------------- C++ of the host */

/* The caller sets `portable_item` and calls the kernel once per item. Groups and shared memory do not
 * exist here: kernels that need them are left out. */
#define HOST_DIALECT 1
static thread_local u64 portable_item = 0;
static thread_local u64 portable_items = 1;
#define DEVICE static inline
#define KERNEL(name) extern "C" void name
#define ITEM portable_item
#define ITEMS portable_items
#define ATOMIC_ADD(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define FMA32(a, b, c) __builtin_fmaf((a), (b), (c))
#define FMA64(a, b, c) __builtin_fma((a), (b), (c))

struct f32x4 {
    float x, y, z, w;
};
DEVICE f32x4 operator+(f32x4 a, f32x4 b)
{
    return f32x4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
DEVICE f32x4 operator*(float s, f32x4 a)
{
    return f32x4{s * a.x, s * a.y, s * a.z, s * a.w};
}

#endif

#ifndef DOT4
DEVICE int dot4_bytes(int a, int b, int c)
{
    u32 sum = (u32)c;
    for (int shift = 0; shift < 32; shift += 8)
        sum += (u32)((int)(signed char)(a >> shift) * (int)(signed char)(b >> shift));
    return (int)sum;
}
#define DOT4(a, b, c) dot4_bytes((a), (b), (c))
#endif

#endif /* C++ dialects */

/* ------------------------------------------------------------------------------- shares of the work */

/* Runs over those of `total` things that belong to share `index` of `count`; the shares of all indices
 * together are every thing exactly once, whatever `count` is. */
#ifdef CONTIGUOUS
DEVICE u64 share_begin(u64 index, u64 count, u64 total)
{
    u64 rest = total % count;
    return total / count * index + (index < rest ? index : rest);
}
#define FOR_SHARE(i, index, count, total)                                                            \
    for (u64 i = share_begin((index), (count), (total)), i##_end = share_begin((index) + 1, (count), (total)); \
         i < i##_end; ++i)
#else
#define FOR_SHARE(i, index, count, total) for (u64 i = (index); i < (total); i += (count))
#endif
