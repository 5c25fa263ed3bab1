//! The gamma function, computed as Go computes it, so that its last digits are the same up to 33: by the rational
//! approximation and the formula of Stirling of the Cephes library.

use std::f64::consts::PI;

const NUMERATOR: [f64; 7] = [
    1.601_195_224_767_518_6e-4,
    1.191_351_470_065_863_8e-3,
    1.042_137_975_617_615_7e-2,
    4.763_678_004_571_372e-2,
    2.074_482_276_484_359_8e-1,
    4.942_148_268_014_971e-1,
    1.0,
];
const DENOMINATOR: [f64; 8] = [
    -2.315_818_733_241_201_4e-5,
    5.396_055_804_933_034e-4,
    -4.456_419_138_517_973e-3,
    1.181_397_852_220_604_3e-2,
    3.582_363_986_054_986_5e-2,
    -2.345_917_957_182_433_5e-1,
    7.143_049_170_302_73e-2,
    1.0,
];
const STIRLING: [f64; 5] = [
    7.873_113_957_930_937e-4,
    -2.295_499_616_133_781_3e-4,
    -2.681_326_178_057_812_4e-3,
    3.472_222_216_054_586_6e-3,
    8.333_333_333_334_822e-2,
];

/// The value of a polynomial, whose highest coefficient is the first.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// What would be too large in one step.
const LARGE: f64 = 143.016_08;
/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// For large numbers.
fn stirling(x: f64) -> (f64, f64) {
    if x > 200.0 {
        return (f64::INFINITY, 1.0);
    }
    let inverse = 1.0 / x;
    let correction = 1.0 + inverse * polynomial(inverse, &STIRLING);
    let exponential = x.exp();
    let root = 2.506_628_274_631_000_5;
    if x > LARGE {
        // In two steps, since the whole would be too large.
        let half = x.powf(0.5 * x - 0.25);
        (half / exponential * half, root * correction)
    } else {
        (x.powf(x - 0.5) / exponential, root * correction)
    }
}

#[expect(clippy::float_cmp, reason = "it is about these very numbers")]
pub(super) fn gamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::NEG_INFINITY || (x < 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x == f64::INFINITY {
        return x;
    }
    if x == 0.0 {
        return f64::INFINITY.copysign(x);
    }
    let absolute = x.abs();
    let mut whole = absolute.floor();
    if absolute > 33.0 {
        if x > 0.0 {
            let (one, other) = stirling(x);
            return one * other;
        }
        let negative = whole % 2.0 == 0.0;
        let mut fraction = absolute - whole;
        if fraction > 0.5 {
            whole += 1.0;
            fraction = absolute - whole;
        }
        let sine = absolute * (PI * fraction).sin();
        if sine == 0.0 {
            return if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        }
        let (one, other) = stirling(absolute);
        let sine = sine.abs();
        let product = sine * one * other;
        let result = if product.is_infinite() { PI / sine / one / other } else { PI / product };
        return if negative { -result } else { result };
    }
    let mut x = x;
    let mut factor = 1.0;
    while x >= 3.0 {
        x -= 1.0;
        factor *= x;
    }
    while x < 0.0 {
        if x > -1e-9 {
            return factor / ((1.0 + EULER * x) * x);
        }
        factor /= x;
        x += 1.0;
    }
    while x < 2.0 {
        if x < 1e-9 {
            return factor / ((1.0 + EULER * x) * x);
        }
        factor /= x;
        x += 1.0;
    }
    if x == 2.0 {
        return factor;
    }
    x -= 2.0;
    factor * polynomial(x, &NUMERATOR) / polynomial(x, &DENOMINATOR)
}

#[cfg(test)]
mod tests {
    use super::gamma;

    #[test]
    fn it_is_what_go_computes() {
        for (x, expected) in [
            (0.5, "1.7724538509055159"),
            (5.0, "24"),
            (4.2, "7.75668953579318"),
            (-1.5, "2.363271801207355"),
            (0.0, "inf"),
            (171.0, "72574156153"),
            (172.0, "inf"),
            (-2.0, "NaN"),
            (1e-10, "9999999999.422785"),
            (20.0, "121645100408832000"),
        ] {
            assert!(format!("{}", gamma(x)).starts_with(expected), "{x}: {}", gamma(x));
        }
    }
}
