//! Names of points.

use crate::models::roofline::{Point, Scope};

/// A point's name, with its host unless it is for the whole job.
pub(in crate::present) fn label(point: &Point) -> String {
    match &point.scope {
        Scope::Job => point.name.clone(),
        Scope::Host(host) => format!("{}, {host}", point.name),
    }
}
