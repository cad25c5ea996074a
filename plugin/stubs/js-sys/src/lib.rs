//! The names of `js-sys` that chrono compiles against, without JavaScript behind them.
//!
//! A connector has no clock; `now` is an argument of each call. Nothing here is reachable from it.

use wasm_bindgen::JsValue;

/// A date that is always invalid (NaN milliseconds), as JavaScript has them.
#[derive(Debug, Clone)]
pub struct Date;

impl Date {
    /// The current time: there is none.
    #[must_use]
    pub fn new_0() -> Self {
        Self
    }

    /// A date from milliseconds: ignored.
    #[must_use]
    pub fn new(_millis: &JsValue) -> Self {
        Self
    }

    /// A date from its parts: ignored.
    #[must_use]
    pub fn new_with_year_month_day_hr_min_sec(
        _year: u32,
        _month: i32,
        _day: i32,
        _hour: i32,
        _minute: i32,
        _second: i32,
    ) -> Self {
        Self
    }

    /// Milliseconds since 1970: not a number.
    #[must_use]
    pub fn get_time(&self) -> f64 {
        f64::NAN
    }

    /// Minutes between UTC and local time: none.
    #[must_use]
    pub fn get_timezone_offset(&self) -> f64 {
        0.0
    }
}
