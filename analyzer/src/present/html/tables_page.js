"use strict";
// Starts the page of a study.

document.documentElement.classList.add("js");
document.querySelectorAll("table[data-sortable]").forEach(sortable);
document.querySelectorAll("input[data-filters]").forEach(filterable);
