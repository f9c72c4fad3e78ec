//! Metrics in the text format of Prometheus.

/// A metric of `/metrics`, summed over its labels; 0 if there is none with this name.
pub fn sum(metrics: &str, name: &str) -> f64 {
    let samples = metrics.lines().filter_map(|line| line.strip_prefix(name));
    let samples = samples.filter(|rest| rest.starts_with([' ', '{']));
    samples.filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}
