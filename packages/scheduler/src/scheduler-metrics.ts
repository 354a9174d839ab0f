import type { Counter, Gauge, Histogram, Metrics } from '@keelson/core/runtime';

/** Metrics of the scheduler; names follow those of kube-scheduler. */
export interface SchedulerMetrics {
  /** Attempts to schedule a pod, by result: scheduled, unschedulable, error. */
  readonly attempts: Counter;
  readonly attemptSeconds: Histogram;
  readonly podSeconds: Histogram;
  readonly podAttempts: Histogram;
  /** Number of pods without a node, by queue: active, backoff, unschedulable, gated. */
  readonly pending: Gauge;
  readonly preemptionAttempts: Counter;
  readonly preemptionVictims: Histogram;
}

const powers = (first: number, factor: number, count: number) =>
  Array.from({ length: count }, (_, at) => first * factor ** at);

export function schedulerMetrics(metrics: Metrics): SchedulerMetrics {
  return {
    attempts: metrics.counter({
      name: 'scheduler_schedule_attempts_total',
      help: 'Attempts to schedule pods, by result: scheduled, unschedulable or error.',
      labels: ['result'],
    }),
    attemptSeconds: metrics.histogram({
      name: 'scheduler_scheduling_attempt_duration_seconds',
      help: 'Duration of attempts: the decision and its binding, by result.',
      labels: ['result'],
      buckets: powers(0.0001, 2, 16),
    }),
    podSeconds: metrics.histogram({
      name: 'scheduler_pod_scheduling_sli_duration_seconds',
      help: 'Time from the first queueing of a pod to its binding.',
      buckets: powers(0.01, 2, 20),
    }),
    podAttempts: metrics.histogram({
      name: 'scheduler_pod_scheduling_attempts',
      help: 'Attempts until a pod was bound.',
      buckets: powers(1, 2, 5),
    }),
    pending: metrics.gauge({
      name: 'scheduler_pending_pods',
      help: 'Pods without a node, by queue: active, backoff, unschedulable or gated.',
      labels: ['queue'],
    }),
    preemptionAttempts: metrics.counter({
      name: 'scheduler_preemption_attempts_total',
      help: 'Attempts to make room for a pod by deleting others.',
    }),
    preemptionVictims: metrics.histogram({
      name: 'scheduler_preemption_victims',
      help: 'Pods deleted in one preemption.',
      buckets: powers(1, 2, 7),
    }),
  };
}
