"use strict";
// Starts pages that have tables but no timeline: of studies, comparisons and histories.

document.documentElement.classList.add("js");
document.querySelectorAll("table[data-sortable]").forEach(sortable);
document.querySelectorAll("input[data-filters]").forEach(filterable);
