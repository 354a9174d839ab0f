/** Figures at one size. */
export interface GrowthPoint {
  readonly x: number;
  readonly figures: Readonly<Record<string, number>>;
}

/** The line `base + slope * x` that fits points best, by least squares. */
export interface Fit {
  readonly base: number;
  readonly slope: number;
  /** Share of the variance that the line explains. */
  readonly r2: number;
}

type Pair = readonly [x: number, y: number];

export function fitOf(points: readonly GrowthPoint[], figure: string): Fit {
  const pairs = points.map(({ x, figures }): Pair => [x, figures[figure] ?? Number.NaN]);
  const mean = (of: 0 | 1) => pairs.reduce((sum, pair) => sum + pair[of], 0) / pairs.length;
  const means: Pair = [mean(0), mean(1)];
  const products = (a: 0 | 1, b: 0 | 1) =>
    pairs.reduce((sum, pair) => sum + (pair[a] - means[a]) * (pair[b] - means[b]), 0);
  const slope = products(0, 1) / products(0, 0);
  const variance = products(1, 1);
  const r2 = variance === 0 ? 1 : (slope * products(0, 1)) / variance;
  return { base: means[1] - slope * means[0], slope, r2 };
}
