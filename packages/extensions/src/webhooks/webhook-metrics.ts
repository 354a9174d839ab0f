import type { AdmissionRequest } from '@keelson/core';
import type { Metrics } from '@keelson/core/runtime';

export type WebhookType = 'admit' | 'validating';

/** Metrics of webhooks, with the names of kube-apiserver. */
export class WebhookMetrics {
  readonly #duration;
  readonly #requests;
  readonly #rejections;
  readonly #failedOpen;

  constructor(metrics: Metrics) {
    const about = ['name', 'type', 'operation'];
    this.#duration = metrics.histogram({
      name: 'apiserver_admission_webhook_admission_duration_seconds',
      help: 'Admission webhook latency in seconds, by webhook, operation and type.',
      labels: [...about, 'rejected'],
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25],
    });
    this.#requests = metrics.counter({
      name: 'apiserver_admission_webhook_request_total',
      help: 'Admission webhook requests, by webhook, operation, type and code.',
      labels: [...about, 'code', 'rejected'],
    });
    this.#rejections = metrics.counter({
      name: 'apiserver_admission_webhook_rejection_count',
      help: 'Rejections by admission webhooks, by webhook, operation, type, kind of error and code.',
      labels: [...about, 'error_type', 'rejection_code'],
    });
    this.#failedOpen = metrics.counter({
      name: 'apiserver_admission_webhook_fail_open_count',
      help: 'Calls of admission webhooks that failed and were ignored.',
      labels: ['name', 'type'],
    });
  }

  called(
    name: string,
    type: WebhookType,
    { operation }: AdmissionRequest,
    outcome: { readonly seconds: number; readonly code: number; readonly rejected: boolean },
  ): void {
    const labels = { name, type, operation: operation.toUpperCase(), rejected: String(outcome.rejected) };
    this.#duration.observe(outcome.seconds, labels);
    this.#requests.add(1, { ...labels, code: String(outcome.code) });
  }

  rejected(name: string, type: WebhookType, { operation }: AdmissionRequest, errorType: string, code: number): void {
    const labels = { name, type, operation: operation.toUpperCase() };
    this.#rejections.add(1, { ...labels, error_type: errorType, rejection_code: String(code) });
  }

  failedOpen(name: string, type: WebhookType): void {
    this.#failedOpen.add(1, { name, type });
  }
}
