//! The results, for people and for programs.

use std::fmt::Write;

use serde_json::{Value, json};

/// What a row should reach.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// One measured thing.
#[derive(Debug)]
pub struct Row {
    name: String,
    unit: &'static str,
    value: f64,
    /// What it is measured against, in the same unit and run.
    reference: f64,
    target: Option<Target>,
}

impl Row {
    /// Measured against something else in the same run.
    pub fn against(
        name: String,
        unit: &'static str,
        value: f64,
        reference: f64,
        target: Option<Target>,
    ) -> Self {
        Self { name, unit, value, reference, target }
    }

    /// Measured against a bound.
    pub fn bound(name: &str, unit: &'static str, value: f64, bound: f64) -> Self {
        Self { name: name.to_owned(), unit, value, reference: bound, target: Some(Target::AtMost(1.0)) }
    }

    fn ratio(&self) -> f64 {
        self.value / self.reference
    }

    fn passes(&self) -> Option<bool> {
        self.target.map(|target| match target {
            Target::AtMost(most) => self.ratio() <= most,
            Target::AtLeast(least) => self.ratio() >= least,
        })
    }
}

/// All rows.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn targets(&self) -> usize {
        self.rows.iter().filter_map(Row::passes).count()
    }

    pub fn passed(&self) -> usize {
        self.rows.iter().filter_map(Row::passes).filter(|passes| *passes).count()
    }

    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<44} {:>10} {:<10} {:>11} {:>7}  {:<8} {}\n",
            "what", "value", "unit", "reference", "ratio", "target", "met"
        );
        for row in &self.rows {
            let target = match row.target {
                None => String::new(),
                Some(Target::AtMost(most)) => format!("<= {most}"),
                Some(Target::AtLeast(least)) => format!(">= {least}"),
            };
            let met = row.passes().map_or("", |passes| if passes { "yes" } else { "NO" });
            let _ = writeln!(
                text,
                "{:<44} {:>10.3} {:<10} {:>11.3} {:>7.3}  {target:<8} {met}",
                row.name,
                row.value,
                row.unit,
                row.reference,
                row.ratio(),
            );
        }
        text
    }

    pub fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let target = row.target.map(|target| match target {
                    Target::AtMost(target) | Target::AtLeast(target) => target,
                });
                json!({
                    "name": row.name,
                    "value": row.value,
                    "unit": row.unit,
                    "reference": row.reference,
                    "ratio": row.ratio(),
                    "target": target,
                    "pass": row.passes(),
                })
            })
            .collect();
        format!("{:#}\n", Value::Array(rows))
    }
}
