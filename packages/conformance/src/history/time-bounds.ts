/** A revision and a point in time. */
export interface Moment {
  readonly at: number;
  readonly revision: number;
}

/**
 * Bounds of revisions that follow from the real-time order of operations. Every query is a binary search over running
 * maxima and minima.
 */
export class TimeBounds {
  readonly #seen: readonly Moment[];
  readonly #begun: readonly Moment[];
  readonly #begunGreatest: readonly Moment[];

  /**
   * @param seen time at which a client had observed a revision
   * @param begun time at which the write of a revision began
   */
  constructor(seen: readonly Moment[], begun: readonly Moment[]) {
    const byTime = (a: Moment, b: Moment) => a.at - b.at;
    this.#seen = runningGreatest([...seen].sort(byTime));
    const sorted = [...begun].sort(byTime);
    this.#begunGreatest = runningGreatest(sorted);
    let least = Number.POSITIVE_INFINITY;
    for (let i = sorted.length - 1; i >= 0; i--) {
      const moment = sorted[i] as Moment;
      least = Math.min(least, moment.revision);
      sorted[i] = { at: moment.at, revision: least };
    }
    this.#begun = sorted;
  }

  /** Returns the greatest revision observed before this time: operations that begin now must not be older. */
  floor(at: number): number {
    return this.#seen[firstNotBefore(this.#seen, at) - 1]?.revision ?? 0;
  }

  /** Returns the greatest possible revision at this time: all writes that began later have greater revisions. */
  ceiling(at: number): number {
    return (this.#begun[firstAfter(this.#begun, at)]?.revision ?? Number.POSITIVE_INFINITY) - 1;
  }

  /** Returns the greatest revision of all writes that had begun at this time. */
  begunBy(at: number): number {
    return this.#begunGreatest[firstAfter(this.#begunGreatest, at) - 1]?.revision ?? 0;
  }
}

function runningGreatest(moments: readonly Moment[]): Moment[] {
  let greatest = 0;
  return moments.map(({ at, revision }) => {
    greatest = Math.max(greatest, revision);
    return { at, revision: greatest };
  });
}

function search(moments: readonly Moment[], belongsRight: (moment: Moment) => boolean): number {
  let low = 0;
  let high = moments.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (belongsRight(moments[middle] as Moment)) high = middle;
    else low = middle + 1;
  }
  return low;
}

const firstNotBefore = (moments: readonly Moment[], at: number) => search(moments, (moment) => moment.at >= at);
const firstAfter = (moments: readonly Moment[], at: number) => search(moments, (moment) => moment.at > at);
