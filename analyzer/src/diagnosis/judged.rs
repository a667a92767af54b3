//! The findings of a run, without what another finding makes invalid.

use super::evidence::Evidence;
use super::figures::Figures;
use super::finding::Finding;

/// The findings of a run, the gravest first.
#[derive(Debug, Clone)]
pub struct Diagnosis<'a> {
    /// What it was made from.
    pub of: Evidence<'a>,
    /// What was found; nothing that another finding makes invalid.
    pub findings: Vec<Finding>,
}

/// The finding of a run that makes some figures invalid, if one does.
pub fn invalidated_by(findings: &[Finding], figures: Figures) -> Option<&Finding> {
    let invalidates = |finding: &&Finding| finding.invalidates().contains(&figures);
    // How a run got stuck says more than that its ranks lacked cores.
    let stuck = findings.iter().find(|finding| **finding == Finding::Stuck);
    stuck.filter(invalidates).or_else(|| findings.iter().find(invalidates))
}

impl<'a> Diagnosis<'a> {
    /// The finding that makes some figures invalid, if one does.
    pub fn invalidated_by(&self, figures: Figures) -> Option<&Finding> {
        invalidated_by(&self.findings, figures)
    }

    /// Whether a lack of cores explains more than anything else.
    pub fn lacks_cores(&self) -> bool {
        let decisive =
            |finding: &Finding| matches!(finding, Finding::LackOfCores { decisive: true, .. });
        self.findings.iter().any(decisive)
    }

    /// Removes what is about figures that another finding makes invalid, and what would be said twice.
    pub(super) fn suppress(&mut self) {
        let is_said = |finding: &Finding| {
            let others = self.findings.iter().filter(|other| !std::ptr::eq(*other, finding));
            let mut invalid = others.flat_map(Finding::invalidates);
            !invalid.any(|figures| finding.is_about().contains(figures))
        };
        let said: Vec<Finding> =
            self.findings.iter().filter(|finding| is_said(finding)).cloned().collect();
        self.findings = said;
        let others = self.findings.clone();
        for finding in &mut self.findings {
            if let Finding::Efficiency(efficiency) = finding {
                let longest = efficiency.longest.map(|longest| longest.rank);
                efficiency.blamed =
                    longest.is_some_and(|rank| others.iter().any(|other| other.blames(rank)));
            }
        }
    }
}
