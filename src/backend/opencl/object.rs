//! OpenCL objects that release themselves. A release that fails is ignored: there is nothing left to do.

use std::ffi::{CString, c_void};
use std::ptr;

use cl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CL_QUEUE_PROPERTIES};
use cl3::event::{CL_EVENT_COMMAND_EXECUTION_STATUS, CL_PROFILING_COMMAND_END, CL_PROFILING_COMMAND_START};
use cl3::program::CL_PROGRAM_BUILD_LOG;
use cl3::types::{
    cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_mem_flags, cl_program,
};

use super::error::{failed, refused, status_text};
use crate::backend::DeviceError;

macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:path) => {
        $(#[$doc])*
        pub struct $name(pub $raw);
        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle came from the matching create call and is released once, here.
                let _ = unsafe { $release(self.0) };
            }
        }
        // SAFETY: the OpenCL specification makes all API calls thread-safe except clSetKernelArg; kernels are
        // only used under a lock.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    };
}

object!(
    /// A context with one device.
    Context, cl_context, cl3::context::release_context);
object!(
    /// An in-order queue with profiling.
    Queue, cl_command_queue, cl3::command_queue::release_command_queue);
object!(
    /// A memory object.
    Memory, cl_mem, cl3::memory::release_mem_object);
object!(
    /// A built program.
    Program, cl_program, cl3::program::release_program);
object!(
    /// A kernel of a program. Its arguments are state: use it under a lock.
    Kernel, cl_kernel, cl3::kernel::release_kernel);
object!(
    /// A command that was queued.
    Event, cl_event, cl3::event::release_event);

impl Context {
    /// A context for `device` alone.
    pub fn new(device: cl_device_id) -> Result<Context, DeviceError> {
        cl3::context::create_context(&[device], ptr::null(), None, ptr::null_mut())
            .map(Context)
            .map_err(failed("clCreateContext"))
    }

    /// An in-order queue with profiling.
    pub fn queue(&self, device: cl_device_id) -> Result<Queue, DeviceError> {
        let properties = [CL_QUEUE_PROPERTIES as u64, CL_QUEUE_PROFILING_ENABLE, 0];
        // SAFETY: context and device are valid; the list of properties ends with 0.
        match unsafe { cl3::command_queue::create_command_queue_with_properties(self.0, device, properties.as_ptr()) } {
            Ok(queue) => Ok(Queue(queue)),
            // Drivers before OpenCL 2.0 lack the call or refuse it.
            #[expect(deprecated, reason = "the only call that OpenCL 1.2 drivers have")]
            // SAFETY: context and device are valid.
            Err(_) => unsafe {
                cl3::command_queue::create_command_queue(self.0, device, CL_QUEUE_PROFILING_ENABLE)
                    .map(Queue)
                    .map_err(failed("clCreateCommandQueue"))
            },
        }
    }

    /// An uninitialised buffer of `size` bytes.
    pub fn buffer(&self, flags: cl_mem_flags, size: usize) -> Result<Memory, DeviceError> {
        // SAFETY: the context is valid and no host pointer is passed.
        unsafe { cl3::memory::create_buffer(self.0, flags, size, ptr::null_mut()) }
            .map(Memory)
            .map_err(failed("clCreateBuffer"))
    }

    /// Builds `source` for `device`; the build log is in the error.
    pub fn build(&self, device: cl_device_id, name: &str, source: &str, options: &str) -> Result<Program, DeviceError> {
        let program = cl3::program::create_program_with_source(self.0, &[source])
            .map(Program)
            .map_err(failed("clCreateProgramWithSource"))?;
        let call = format!("clBuildProgram({name})");
        let options_text = CString::new(options).map_err(|_| refused(&call, "options hold a zero byte"))?;
        let built = cl3::program::build_program(program.0, &[device], &options_text, None, ptr::null_mut());
        built.map_err(|status| {
            let log = cl3::program::get_program_build_data(program.0, device, CL_PROGRAM_BUILD_LOG)
                .map(|bytes| text(&bytes))
                .unwrap_or_else(|status| format!("no build log: {}", status_text(status)));
            let log: String = log.chars().take(4000).collect();
            refused(&call, format!("{} with \"{options}\": {log}", status_text(status)))
        })?;
        Ok(program)
    }
}

impl Program {
    /// The entry point called `entry`.
    pub fn kernel(&self, entry: &str) -> Result<Kernel, DeviceError> {
        let call = format!("clCreateKernel({entry})");
        let name = CString::new(entry).map_err(|_| refused(&call, "name holds a zero byte"))?;
        cl3::kernel::create_kernel(self.0, &name).map(Kernel).map_err(failed(&call))
    }
}

impl Kernel {
    /// Sets argument `index` to the bytes of `value`, whose type is the argument's.
    pub fn set<T: Copy>(&self, index: usize, value: &T) -> Result<(), DeviceError> {
        // SAFETY: `value` is readable for its size; OpenCL copies it and refuses a size that does not fit.
        unsafe {
            cl3::kernel::set_kernel_arg(self.0, index as u32, size_of::<T>(), ptr::from_ref(value).cast::<c_void>())
        }
        .map_err(failed("clSetKernelArg"))
    }
}

impl Queue {
    /// Hands everything queued to the device.
    pub fn flush(&self) -> Result<(), DeviceError> {
        cl3::command_queue::flush(self.0).map_err(failed("clFlush"))
    }

    /// Waits until everything queued is complete.
    pub fn finish(&self) -> Result<(), DeviceError> {
        cl3::command_queue::finish(self.0).map_err(failed("clFinish"))
    }

    /// Queues `groups` groups of `local` items.
    pub fn launch(&self, kernel: &Kernel, groups: usize, local: usize) -> Result<(), DeviceError> {
        let global = groups * local;
        // SAFETY: queue and kernel are valid and of one context, all arguments are set, one dimension is given.
        unsafe {
            cl3::command_queue::enqueue_nd_range_kernel(
                self.0,
                kernel.0,
                1,
                ptr::null(),
                &raw const global,
                &raw const local,
                0,
                ptr::null(),
            )
        }
        .map(|event| drop(Event(event)))
        .map_err(failed("clEnqueueNDRangeKernel"))
    }

    /// Queues filling the first `size` bytes, a multiple of 4, with zeros.
    pub fn zero(&self, memory: &Memory, size: usize) -> Result<Event, DeviceError> {
        let pattern = 0u32;
        // SAFETY: the pattern is read before the call returns; OpenCL checks the range.
        unsafe {
            cl3::command_queue::enqueue_fill_buffer(
                self.0,
                memory.0,
                (&raw const pattern).cast::<c_void>(),
                size_of::<u32>(),
                0,
                size,
                0,
                ptr::null(),
            )
        }
        .map(Event)
        .map_err(failed("clEnqueueFillBuffer"))
    }

    /// Everything queued later starts after `event`.
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        // SAFETY: one valid event of the same context is passed.
        unsafe { cl3::command_queue::enqueue_barrier_with_wait_list(self.0, 1, &raw const event.0) }
            .map(|event| drop(Event(event)))
            .map_err(failed("clEnqueueBarrierWithWaitList"))
    }
}

impl Event {
    /// Waits for completion; start and end of the command in nanoseconds of the device's timer.
    pub fn times(&self) -> Result<(u64, u64), DeviceError> {
        cl3::event::wait_for_events(&[self.0]).map_err(failed("clWaitForEvents"))?;
        let status = cl3::event::get_event_info(self.0, CL_EVENT_COMMAND_EXECUTION_STATUS)
            .map(cl_int::from)
            .map_err(failed("clGetEventInfo"))?;
        if status < 0 {
            return Err(failed("a queued command")(status));
        }
        let stamp = |which| {
            cl3::event::get_event_profiling_info(self.0, which)
                .map(u64::from)
                .map_err(failed("clGetEventProfilingInfo"))
        };
        Ok((stamp(CL_PROFILING_COMMAND_START)?, stamp(CL_PROFILING_COMMAND_END)?))
    }
}

/// Text of a driver: up to the first zero byte, whatever is not UTF-8 replaced, trimmed.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
