import type { autoscalingV2 } from '@keelson/kinds';

/** Without `spec.behavior`, one step at most doubles the number of replicas, or raises it to this number. */
const freeGrowth = 4;
/** Default of the window in seconds whose highest recommendation applies when scaling down. */
const scaleDownWindow = 300;
/** Maximum of `stabilizationWindowSeconds` and of `periodSeconds`, in milliseconds. */
const longestMs = 3600 * 1000;
/** Maximum number of recorded entries, which is greater than the number of runs within the longest window. */
const maxEntries = 500;

interface Entry {
  /** Monotonic milliseconds. */
  readonly at: number;
  readonly value: number;
}

/** The recent recommendations of an autoscaler, and its recent changes of the number of replicas. */
export class ScalingHistory {
  #recommendations: Entry[] = [];
  /** Changes of the number of replicas. */
  #changes: Entry[] = [];

  /** Records the current number of replicas of the workload as the first recommendation. */
  begin(replicas: number, at: number): void {
    if (this.#recommendations.length === 0) this.#recommendations.push({ at, value: replicas });
  }

  recommended(value: number, at: number): void {
    this.#recommendations = [
      ...this.#recommendations.filter((entry) => entry.at > at - longestMs),
      { at, value },
    ].slice(-maxEntries);
  }

  scaled(change: number, at: number): void {
    this.#changes = [...this.#changes.filter((entry) => entry.at > at - longestMs), { at, value: change }].slice(
      -maxEntries,
    );
  }

  /** The minimum or maximum of `value` and the recommendations of the last `seconds`. */
  extreme(pick: (...values: number[]) => number, value: number, seconds: number, now: number): number {
    const since = now - seconds * 1000;
    return this.#recommendations.reduce(
      (result, entry) => (entry.at > since ? pick(result, entry.value) : result),
      value,
    );
  }

  /** The number of replicas `seconds` ago: the current number without the changes since then. */
  replicasBefore(current: number, seconds: number, now: number): number {
    return this.#changes.reduce((sum, { at, value }) => (at > now - seconds * 1000 ? sum - value : sum), current);
  }
}

export interface LimitOptions {
  readonly spec: autoscalingV2.HorizontalPodAutoscalerSpec;
  readonly history: ScalingHistory;
  readonly current: number;
  /** Number of replicas that the metrics recommend. */
  readonly recommended: number;
  /** Monotonic milliseconds. */
  readonly now: number;
}

type Condition = Pick<autoscalingV2.HorizontalPodAutoscalerCondition, 'type' | 'status' | 'reason' | 'message'>;

/** The number of replicas within all limits, with the conditions AbleToScale and ScalingLimited. */
export function limitedReplicas(options: LimitOptions): { replicas: number; conditions: Condition[] } {
  const { spec, recommended, history, now } = options;
  const stabilized = stabilizedReplicas(options);
  history.recommended(recommended, now);
  const { replicas, reason, message } = rateLimited({ ...options, recommended: stabilized.replicas });
  const able =
    stabilized.replicas === recommended
      ? { reason: 'ReadyForNewScale', message: 'recommended size matches current size' }
      : stabilized;
  const isLimited = replicas !== stabilized.replicas;
  return {
    replicas: Math.min(replicas, spec.maxReplicas),
    conditions: [
      { type: 'AbleToScale', status: 'True', reason: able.reason, message: able.message },
      { type: 'ScalingLimited', status: isLimited ? 'True' : 'False', reason, message },
    ],
  };
}

interface Explained {
  readonly replicas: number;
  readonly reason: string;
  readonly message: string;
}

/** The recommendation within the lowest and highest recommendations of the stabilization windows. */
function stabilizedReplicas({ spec, history, current, recommended, now }: LimitOptions): Explained {
  const { behavior } = spec;
  const downSeconds = behavior?.scaleDown?.stabilizationWindowSeconds ?? scaleDownWindow;
  const highest = history.extreme(Math.max, recommended, downSeconds, now);
  const down = {
    reason: 'ScaleDownStabilized',
    message: 'recent recommendations were higher than current one, applying the highest recent recommendation',
  };
  if (behavior === undefined) return { replicas: highest, ...down };
  const lowest = history.extreme(Math.min, recommended, behavior.scaleUp?.stabilizationWindowSeconds ?? 0, now);
  const replicas = Math.min(Math.max(current, lowest), highest);
  if (recommended < current) return { replicas, ...down };
  const message = 'recent recommendations were lower than current one, applying the lowest recent recommendation';
  return { replicas, reason: 'ScaleUpStabilized', message };
}

const within = { reason: 'DesiredWithinRange', message: 'the desired count is within the acceptable range' };
const tooMany = {
  reason: 'TooManyReplicas',
  message: 'the desired replica count is more than the maximum replica count',
};
const tooFew = {
  reason: 'TooFewReplicas',
  message: 'the desired replica count is less than the minimum replica count',
};
const tooFast = {
  reason: 'ScaleUpLimit',
  message: 'the desired replica count is increasing faster than the maximum scale rate',
};
const tooSlow = {
  reason: 'ScaleDownLimit',
  message: 'the desired replica count is decreasing faster than the maximum scale rate',
};

/** The number of replicas within the limits of the spec and of the policies. */
function rateLimited(options: LimitOptions): Explained {
  const { spec, current, recommended } = options;
  const { minReplicas = 1, maxReplicas, behavior } = spec;
  const growth = behavior === undefined ? Math.max(2 * current, freeGrowth) : policyLimit(options, 'up');
  const most = Math.min(maxReplicas, behavior === undefined ? growth : Math.max(growth, current));
  const least =
    behavior === undefined ? minReplicas : Math.max(minReplicas, Math.min(policyLimit(options, 'down'), current));
  if (recommended > most && (behavior === undefined || recommended > current))
    return { replicas: most, ...(maxReplicas > most ? tooFast : tooMany) };
  if (recommended < least && (behavior === undefined || recommended < current))
    return { replicas: least, ...(least > minReplicas ? tooSlow : tooFew) };
  return { replicas: recommended, ...within };
}

/** The highest (`up`) or lowest (`down`) number of replicas that the scaling policies permit. */
function policyLimit({ spec, history, current, now }: LimitOptions, direction: 'up' | 'down'): number {
  const rules = direction === 'up' ? spec.behavior?.scaleUp : spec.behavior?.scaleDown;
  const { selectPolicy = 'Max', policies = [] } = rules ?? {};
  if (selectPolicy === 'Disabled' || policies.length === 0) return current;
  const limits = policies.map(({ type, value, periodSeconds }) => {
    const before = history.replicasBefore(current, periodSeconds, now);
    if (direction === 'up') return type === 'Pods' ? before + value : Math.ceil(before * (1 + value / 100));
    return type === 'Pods' ? before - value : Math.floor(before * (1 - value / 100));
  });
  // `Max` selects the greatest change: the highest number for scaling up, the lowest number for scaling down.
  const isHighest = (selectPolicy === 'Max') === (direction === 'up');
  return isHighest ? Math.max(...limits) : Math.min(...limits);
}
