//! `math.star`: numbers.

use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::float::UnpackFloat;
use starlark::values::{Heap, Value};

use super::problem;

/// The whole number that a number is.
fn whole(number: f64, heap: Heap<'_>) -> starlark::Result<Value<'_>> {
    // Larger numbers have no fraction that could be cut off, but they do not fit either.
    if number.abs() >= 9.0e18 || number.is_nan() {
        return Err(problem(format!("cannot convert {number} to an integer")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is smaller than the largest integer")]
    Ok(heap.alloc(number as i64))
}

#[starlark_module]
fn rounding(builder: &mut GlobalsBuilder) {
    fn ceil<'v>(#[starlark(require = pos)] x: UnpackFloat, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        whole(x.0.ceil(), heap)
    }

    fn floor<'v>(#[starlark(require = pos)] x: UnpackFloat, heap: Heap<'v>) -> starlark::Result<Value<'v>> {
        whole(x.0.floor(), heap)
    }

    fn round(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.round())
    }

    fn fabs(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.abs())
    }

    fn copysign(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] y: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(x.0.copysign(y.0))
    }

    fn r#mod(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] y: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(x.0 % y.0)
    }

    /// What is left of x after the whole number of y that is nearest to it.
    fn remainder(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] y: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(x.0 - y.0 * (x.0 / y.0).round_ties_even())
    }
}

#[starlark_module]
fn powers(builder: &mut GlobalsBuilder) {
    fn pow(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] y: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(x.0.powf(y.0))
    }

    fn exp(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.exp())
    }

    fn sqrt(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.sqrt())
    }

    fn gamma(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(super::gamma::gamma(x.0))
    }

    /// The logarithm to a base, which is e if it is not given.
    fn log(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] base: Option<UnpackFloat>,
    ) -> starlark::Result<f64> {
        Ok(base.map_or_else(|| x.0.ln(), |base| x.0.ln() / base.0.ln()))
    }

    fn hypot(
        #[starlark(require = pos)] x: UnpackFloat,
        #[starlark(require = pos)] y: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(x.0.hypot(y.0))
    }
}

#[starlark_module]
fn angles(builder: &mut GlobalsBuilder) {
    fn acos(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.acos())
    }

    fn asin(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.asin())
    }

    fn atan(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.atan())
    }

    fn atan2(
        #[starlark(require = pos)] y: UnpackFloat,
        #[starlark(require = pos)] x: UnpackFloat,
    ) -> starlark::Result<f64> {
        Ok(y.0.atan2(x.0))
    }

    fn cos(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.cos())
    }

    fn sin(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.sin())
    }

    fn tan(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.tan())
    }

    fn degrees(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.to_degrees())
    }

    fn radians(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.to_radians())
    }

    fn acosh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.acosh())
    }

    fn asinh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.asinh())
    }

    fn atanh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.atanh())
    }

    fn cosh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.cosh())
    }

    fn sinh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.sinh())
    }

    fn tanh(#[starlark(require = pos)] x: UnpackFloat) -> starlark::Result<f64> {
        Ok(x.0.tanh())
    }
}

pub(super) fn math(builder: &mut GlobalsBuilder) {
    builder.namespace("math", |members| {
        rounding(members);
        powers(members);
        angles(members);
        members.set("e", std::f64::consts::E);
        members.set("pi", std::f64::consts::PI);
    });
}
