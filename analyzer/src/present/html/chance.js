"use strict";
// Whether a difference may be chance: the exact binomial test and Holm's method, as the verdict uses them.

// ln Γ(x) for x > 0: Stirling's series (DLMF 5.11.1), from where it has all digits.
function lnGamma(x) {
  let below = 0;
  for (; x < 12; x++) below += Math.log(x);
  return (x - 0.5) * Math.log(x) - x + Math.log(2 * Math.PI) / 2
    + (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * x * x)) / (x * x)) / (x * x)) / x - below;
}

// The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22) after Lentz.
function betaPart(x, a, b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaPart(1 - x, b, a);
  const least = 1e-300, kept = value => Math.abs(value) < least ? least : value;
  let c = 1, d = 1 / kept(1 - (a + b) * x / (a + 1)), fraction = d;
  for (let m = 1; m < 10000; m++) {
    const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    let change = 1;
    for (const term of [even, odd]) {
      d = 1 / kept(1 + term * d);
      c = kept(1 + term / c);
      change *= c * d;
    }
    fraction *= change;
    if (Math.abs(change - 1) < 1e-13) break;
  }
  return Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) * fraction / a;
}

// The probability of a number of successes at least as far from what is expected, in either direction.
function byChance(successes, trials, probability) {
  const least = k => k <= 0 ? 1 : k > trials ? 0 : betaPart(probability, k, trials - k + 1);
  return Math.min(1, 2 * Math.min(least(successes), 1 - least(successes + 1)));
}

// Which of several hypotheses are refused, with at most the error `alpha` for all together.
function holm(probabilities, alpha) {
  const order = probabilities.map((_, number) => number).sort((a, b) => probabilities[a] - probabilities[b]);
  const refused = probabilities.map(() => false);
  for (const [place, number] of order.entries()) {
    if (!(probabilities[number] <= alpha / (order.length - place))) break;
    refused[number] = true;
  }
  return refused;
}
