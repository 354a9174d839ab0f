interface Interval {
  readonly first: number;
  readonly last: number;
}

/** A set of completion indexes, kept as intervals: the status of a job has them as `1,3-5,7`. */
export class IndexSet {
  readonly #intervals: readonly Interval[];
  /** Number of indexes. */
  readonly size: number;

  private constructor(intervals: readonly Interval[]) {
    this.#intervals = intervals;
    this.size = intervals.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  }

  /**
   * Parses a list of indexes such as `1,3-5,7`. Indexes that are not below `completions` and parts that are not numbers
   * are left out.
   */
  static parse(text: string | undefined, completions: number): IndexSet {
    const intervals: Interval[] = [];
    for (const part of text ? text.split(',') : []) {
      const [first = Number.NaN, last = first] = part.split('-').map(Number);
      if (Number.isInteger(first) && Number.isInteger(last) && first < completions)
        intervals.push({ first, last: Math.min(last, completions - 1) });
    }
    return IndexSet.#merged(intervals);
  }

  static of(indexes: Iterable<number>): IndexSet {
    return IndexSet.#merged(Array.from(indexes, (index) => ({ first: index, last: index })));
  }

  static #merged(intervals: Interval[]): IndexSet {
    const result: Interval[] = [];
    for (const { first, last } of intervals.sort((a, b) => a.first - b.first)) {
      const before = result.at(-1);
      if (before === undefined || first > before.last + 1) result.push({ first, last });
      else if (last > before.last) result[result.length - 1] = { first: before.first, last };
    }
    return new IndexSet(result);
  }

  has(index: number): boolean {
    let [low, high] = [0, this.#intervals.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#intervals[middle]?.last ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    const found = this.#intervals[low];
    return found !== undefined && found.first <= index;
  }

  with(...others: readonly IndexSet[]): IndexSet {
    return IndexSet.#merged([this, ...others].flatMap((set) => set.#intervals));
  }

  /** Number of indexes that are in both sets. */
  countCommon(other: IndexSet): number {
    let count = 0;
    let [i, j] = [0, 0];
    for (;;) {
      const [a, b] = [this.#intervals[i], other.#intervals[j]];
      if (a === undefined || b === undefined) return count;
      count += Math.max(0, Math.min(a.last, b.last) - Math.max(a.first, b.first) + 1);
      if (a.last <= b.last) i += 1;
      else j += 1;
    }
  }

  /** The first `count` indexes below `completions` that are not in the set. */
  missing(count: number, completions: number): number[] {
    const found: number[] = [];
    let candidate = 0;
    for (const { first, last } of [...this.#intervals, { first: completions, last: completions }]) {
      for (; candidate < Math.min(first, completions) && found.length < count; candidate += 1) found.push(candidate);
      candidate = Math.max(candidate, last + 1);
    }
    return found;
  }

  toString(): string {
    const parts = this.#intervals.map(({ first, last }) =>
      first === last ? `${first}` : `${first}${last === first + 1 ? ',' : '-'}${last}`,
    );
    return parts.join(',');
  }
}
