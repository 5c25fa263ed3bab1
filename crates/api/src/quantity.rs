//! How Kubernetes writes amounts.

/// Whether a text is an amount, such as `500m`, `1.5Gi` or `1e3`.
pub(crate) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(suffix) = after_number(unsigned) else { return false };
    match suffix.strip_prefix(['e', 'E']) {
        // A lone E is a suffix itself.
        Some(exponent) if !exponent.is_empty() => {
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            suffix == "Ei" || after_number(exponent) == Some("")
        }
        _ => matches!(
            suffix,
            "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi"
        ),
    }
}

/// What follows digits with at most one point in or at either end of them.
fn after_number(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let rest = text.get(whole..)?;
    let Some(fraction) = rest.strip_prefix('.') else { return (whole > 0).then_some(rest) };
    let decimals = digits(fraction);
    if whole + decimals > 0 { fraction.get(decimals..) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_told_from_other_text() {
        for text in [
            "0", "1", "500m", "64Mi", "1.5Gi", "+2", "-3k", ".5", "5.", "1e3", "1E-3", "1E", "1Ei", "1e.5",
            "12e+3.5",
        ] {
            assert!(is_quantity(text), "{text}");
        }
        for text in [
            "", ".", "m", "Mi", "1 Mi", "1mi", "64MB", "1.2.3", "e3", "1e", "1e+", "1ee3", "--1", "１",
            "1Mi ", "ten", "1Eii", "0x10",
        ] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
