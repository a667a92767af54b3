//! Cannon's product as measured by `kernels cannon --json`, beside its predictions.
//!
//! For each order of the matrices: the measured times, the predictions with their errors, and how
//! much communication each strategy hides.

use serde::{Deserialize, Serialize};

use crate::models::kernel_output::{self, KernelOutputError};
use crate::models::machine::{Doubt, Measured};

use super::cannon::{BlockProduct, Model};
use super::parameters::Parameters;

/// The kernel whose documents we read.
const KERNEL: &str = "cannon";

/// The keys that we read from `kernels cannon --json`.
#[derive(Debug, Clone, Deserialize)]
pub struct CannonRun {
    /// MPI library.
    pub mpi: String,
    pub ranks: u64,
    /// Square root of the number of ranks.
    pub grid: u64,
    /// Order of the matrices.
    pub n: u64,
    /// Time t_M of one block product.
    pub block_product_s: Measured,
    /// Time of each strategy.
    pub strategies: Vec<StrategyRun>,
    /// Whether and why the machine was noisy.
    conditions: crate::models::machine::Conditions,
}

/// One strategy, measured.
#[derive(Debug, Clone, Deserialize)]
pub struct StrategyRun {
    /// `simple`, `hidden`, `hidden-receive`, `hidden-send`, `hidden-both`.
    pub strategy: String,
    /// Blocks of A and B together that a rank held.
    pub blocks_held: u64,
    /// Elapsed time of the product.
    pub elapsed_s: Measured,
}

/// Whether a text is the output of the kernel, one document or several.
pub fn is_output(text: &str) -> bool {
    kernel_output::is_output(text, KERNEL)
}

/// Reads one or more documents.
///
/// # Errors
/// See [`KernelOutputError`].
pub fn parse(text: &str) -> Result<Vec<CannonRun>, KernelOutputError> {
    let runs: Vec<CannonRun> = kernel_output::documents(text, KERNEL)?;
    for CannonRun { n, ranks, grid, block_product_s, strategies, .. } in &runs {
        let positive =
            block_product_s.median > 0.0 && strategies.iter().all(|one| one.elapsed_s.median > 0.0);
        if *grid == 0 || grid * grid != *ranks || n % grid != 0 || !positive {
            let why = format!("N = {n} on {ranks} ranks is impossible");
            return Err(KernelOutputError::Impossible(why));
        }
    }
    Ok(runs)
}

/// One strategy at one order of the matrices.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hidden {
    /// Name.
    pub strategy: String,
    /// Blocks that a rank holds.
    pub blocks_held: u64,
    /// Measured elapsed time.
    pub elapsed_s: f64,
    /// Half the width of its 95 % interval.
    pub half_width_s: f64,
    /// Communication that was not hidden: elapsed − p·t_M.
    pub not_hidden_s: f64,
    /// Share of the simple strategy's communication that it hides, at most 1; `None` if the simple
    /// one was not run, or its communication is within its own uncertainty.
    pub hides: Option<f64>,
    /// Whether the rest that is not hidden is within the uncertainty of the measurement.
    pub fully: bool,
}

/// One order of the matrices.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Row {
    /// Order N.
    pub n: u64,
    /// Order l of the blocks.
    pub block: u64,
    /// t_M, measured or from (3).
    pub block_product_s: f64,
    /// Whether t_M was measured at this order.
    #[serde(rename = "block_product_measured")]
    pub measured: bool,
    /// t_c = p·t_M (4).
    pub computation_s: f64,
    /// Predicted T, in the order of [`Model::ALL`].
    #[serde(skip)]
    pub predicted_s: [Option<f64>; 4],
    /// The strategies that were measured, in the kernel's order.
    #[serde(skip)]
    pub strategies: Vec<Hidden>,
}

impl Row {
    /// The measured strategy to compare with the models: the one with buffers at both ends, which
    /// they describe, else the fastest.
    pub fn compared(&self) -> Option<&Hidden> {
        let both = self.strategies.iter().find(|one| one.strategy == "hidden-both");
        let fastest = || self.strategies.iter().min_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
        both.or_else(fastest)
    }

    /// The strategy that hides communication fully with the fewest blocks.
    pub fn fewest_blocks(&self) -> Option<&Hidden> {
        let full = self.strategies.iter().filter(|one| one.fully);
        full.min_by_key(|one| one.blocks_held)
    }
}

/// Where t_f and t_s come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProductSource {
    /// From the user.
    Given,
    /// Fitted to the measured block products.
    Fitted,
    /// From the rate of `dgemm` in `machine.json`, with 2 operations per multiply-add.
    Dgemm,
    /// As measured by Touyama and Horiguchi.
    Paper,
}

/// A remark on a study.
#[derive(Debug, Clone, PartialEq)]
pub enum StudyNote {
    /// Products were measured on a noisy machine.
    Noisy {
        /// Number of noisy products.
        noisy: usize,
        /// Number of all products.
        of: usize,
        /// Order of the first of them.
        n: u64,
        /// Why the machine was noisy, as reported by the kernel.
        reasons: Vec<String>,
    },
    /// The machine's figures may not hold for the products.
    Doubt(Doubt),
}

/// Predictions beside measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct Study {
    /// Square root p of the number of ranks.
    pub grid: u64,
    /// t_f and t_s.
    pub product: BlockProduct,
    /// Where they come from.
    pub product_from: ProductSource,
    /// Ascending by order; an order that was measured several times has several rows.
    pub rows: Vec<Row>,
    /// Remarks.
    pub notes: Vec<StudyNote>,
}

/// Communication below this share of the computation counts as fully hidden.
const NEGLIGIBLE: f64 = 0.01;
/// A measurement with a larger uncertainty than this share of the computation cannot show that
/// communication is fully hidden.
const CERTAIN: f64 = 0.05;

impl Study {
    /// Predicts the given orders and the measured ones. Where `sharing` ranks take turns on a
    /// processor, one block product at a time, a measured t_M counts `sharing` times.
    pub fn new(
        parameters: &Parameters,
        grid: u64,
        given: Option<(BlockProduct, ProductSource)>,
        orders: &[u64],
        (runs, sharing): (&[CannonRun], f64),
    ) -> Option<Self> {
        let points: Vec<(f64, f64)> = runs
            .iter()
            .map(|run| ((run.n / run.grid) as f64, sharing * run.block_product_s.median))
            .collect();
        let fitted = || {
            let fit = BlockProduct::fit(&points)?;
            Some((fit, ProductSource::Fitted))
        };
        let (product, product_from) = given.or_else(fitted)?;
        let mut rows: Vec<Row> =
            runs.iter().map(|run| Row::measured(parameters, run, sharing)).collect();
        for n in orders.iter().filter(|n| runs.iter().all(|run| run.n != **n)) {
            let l = *n as f64 / grid as f64;
            let t_m = product.seconds(l);
            rows.push(Row::new(parameters, grid, *n, t_m, false));
        }
        rows.sort_by_key(|row| row.n);
        let noisy = runs.iter().filter(|run| run.conditions.noisy);
        let mut notes = Vec::new();
        if let Some(run) = noisy.clone().next() {
            notes.push(StudyNote::Noisy {
                noisy: noisy.count(),
                of: runs.len(),
                n: run.n,
                reasons: run.conditions.reasons.clone(),
            });
        }
        Some(Self { grid, product, product_from, rows, notes })
    }
}

impl Row {
    fn new(parameters: &Parameters, grid: u64, n: u64, t_m: f64, measured: bool) -> Self {
        Self {
            n,
            block: n / grid,
            block_product_s: t_m,
            measured,
            computation_s: grid as f64 * t_m,
            predicted_s: Model::ALL.map(|model| model.product_s(parameters, grid, n, t_m)),
            strategies: Vec::new(),
        }
    }

    fn measured(parameters: &Parameters, run: &CannonRun, sharing: f64) -> Self {
        let product = &run.block_product_s;
        let mut row = Self::new(parameters, run.grid, run.n, sharing * product.median, true);
        let of_products = sharing * run.grid as f64 * (product.high - product.low).abs() / 2.0;
        let beyond = |one: &StrategyRun| one.elapsed_s.median - row.computation_s;
        let uncertainty = |one: &StrategyRun| {
            of_products.hypot((one.elapsed_s.high - one.elapsed_s.low).abs() / 2.0)
        };
        let simple = run.strategies.iter().find(|one| one.strategy == "simple");
        let simple = simple.filter(|one| beyond(one) > uncertainty(one)).map(beyond);
        row.strategies = run
            .strategies
            .iter()
            .map(|one| {
                let not_hidden_s = beyond(one);
                let certain = uncertainty(one).min(CERTAIN * row.computation_s);
                let allowed = certain.max(NEGLIGIBLE * row.computation_s);
                Hidden {
                    strategy: one.strategy.clone(),
                    blocks_held: one.blocks_held,
                    elapsed_s: one.elapsed_s.median,
                    half_width_s: (one.elapsed_s.high - one.elapsed_s.low).abs() / 2.0,
                    not_hidden_s,
                    hides: simple.map(|simple| (1.0 - not_hidden_s / simple).min(1.0)),
                    fully: not_hidden_s <= allowed,
                }
            })
            .collect();
        row
    }
}
