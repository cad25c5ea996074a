//! The one name of `wasm-bindgen` that chrono compiles against, without JavaScript behind it.

/// A JavaScript value that holds nothing.
#[derive(Debug, Clone)]
pub struct JsValue;

impl JsValue {
    /// A number: ignored.
    #[must_use]
    pub fn from_f64(_number: f64) -> Self {
        Self
    }
}
