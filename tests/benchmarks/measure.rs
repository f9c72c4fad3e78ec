//! Figures: latencies of one run, rates over several rounds, and how they are printed.

use std::fmt;
use std::time::Duration;

/// Latencies of one run, sorted.
#[derive(Debug, Clone)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Takes them in any order.
    pub fn new(mut values: Vec<Duration>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    /// The values, shortest first.
    pub fn into_inner(self) -> Vec<Duration> {
        self.0
    }

    /// The value that `share` (0 to 1) of them do not exceed, by nearest rank; zero of none.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the number of values, which is far below 2^52"
    )]
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The median.
    pub fn p50(&self) -> Duration {
        self.quantile(0.5)
    }

    /// What one in a hundred exceeds.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// The longest.
    pub fn max(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99, max) = (millis(self.p50()), millis(self.p99()), millis(self.max()));
        write!(f, "p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms")
    }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// One figure over several rounds.
#[derive(Debug, Clone, Default)]
pub struct Rounds(Vec<f64>);

impl Rounds {
    /// Adds a round.
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The newest one; NaN of none.
    pub fn last(&self) -> f64 {
        self.0.last().copied().unwrap_or(f64::NAN)
    }

    /// The same rounds, each divided by that of `base`.
    pub fn ratio_to(&self, base: &Self) -> Self {
        Self(self.0.iter().zip(&base.0).map(|(value, base)| value / base).collect())
    }

    /// The middle one (of an even number, the mean of the middle two); NaN of none.
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        match (sorted.len() / 2, sorted.len() % 2) {
            (0, 0) => f64::NAN,
            (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
            (middle, _) => sorted[middle],
        }
    }

    /// `median (min-max)` with so many decimals; `-` of none.
    pub fn summary(&self, decimals: usize) -> String {
        let sorted = self.sorted();
        match (sorted.first(), sorted.last()) {
            (Some(min), Some(max)) => {
                format!("{:.decimals$} ({min:.decimals$}-{max:.decimals$})", self.median())
            }
            _ => "-".into(),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted
    }
}

/// Prints a Markdown table, columns aligned.
pub fn print_table(head: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([head[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}", width = *width))
            .collect();
        println!("| {} |", cells.join(" | "));
    };
    line(&head.iter().map(ToString::to_string).collect::<Vec<_>>());
    println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
    for row in rows {
        line(row);
    }
}
