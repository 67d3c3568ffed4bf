//! Status codes as errors.

use cl3::error_codes::{
    CL_DEVICE_NOT_AVAILABLE, CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
    error_text,
};
use cl3::types::cl_int;

use crate::backend::DeviceError;

/// Number and name of a status, e.g. "-5 CL_OUT_OF_RESOURCES".
pub fn status_text(status: cl_int) -> String {
    format!("{status} {}", error_text(status))
}

/// Turns the status of `call` into an error.
pub fn failed(call: &str) -> impl Fn(cl_int) -> DeviceError + '_ {
    move |status| match status {
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_HOST_MEMORY | CL_INVALID_BUFFER_SIZE => {
            DeviceError::OutOfMemory(format!("{call}: {}", status_text(status)))
        }
        CL_DEVICE_NOT_AVAILABLE => DeviceError::Lost(format!("{call}: {}", status_text(status))),
        _ => refused(call, status_text(status)),
    }
}

/// A call refused by the driver, or by us before it could harm.
pub fn refused(call: &str, message: impl Into<String>) -> DeviceError {
    DeviceError::Driver { call: call.to_owned(), message: message.into() }
}
