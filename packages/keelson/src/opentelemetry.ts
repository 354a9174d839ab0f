// Entry point `keelson/opentelemetry`: the only one that requires @opentelemetry/api.

import { isStatusError } from '@keelson/core';
import {
  type ActiveSpan,
  type Labels,
  type MetricOptions,
  type Metrics,
  noMetrics,
  type SpanOptions,
  type Tracing,
} from '@keelson/core/runtime';
import {
  context,
  metrics as globalMetrics,
  type Meter,
  type MeterProvider,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { keelsonVersion } from './base/version.ts';

/** The destination of spans and metrics. @experimental */
export interface OpenTelemetryOptions {
  /** Default: the provider that the SDK of the program has registered globally. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the provider that the SDK of the program has registered globally. */
  readonly meterProvider?: MeterProvider;
  /** Metrics that are recorded as well, such as those of the path `/metrics`. Default: none. */
  readonly metrics?: Metrics;
}

/** Tracing and metrics for the options of a control plane, a client or a controller. @experimental */
export interface OpenTelemetry {
  readonly tracing: Tracing;
  readonly metrics: Metrics;
}

/**
 * Connects a plane with OpenTelemetry: `createControlPlane({ ...openTelemetry() })`. The program loads and configures
 * the SDK; without one nothing is recorded.
 *
 * @experimental
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): OpenTelemetry {
  const meter = (options.meterProvider ?? globalMetrics).getMeter('keelson', keelsonVersion);
  return { tracing: tracingOf(options.tracerProvider), metrics: bridgedMetrics(meter, options.metrics ?? noMetrics) };
}

const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

const headerGetter = {
  keys: (headers: NonNullable<SpanOptions['headers']>) => Object.keys(headers),
  get: (headers: NonNullable<SpanOptions['headers']>, name: string) => {
    const value = headers[name];
    return typeof value === 'object' ? [...value] : value;
  },
};

function tracingOf(provider: TracerProvider | undefined): Tracing {
  const tracer = (provider ?? trace).getTracer('keelson', keelsonVersion);
  return {
    span<T>({ name, kind = 'internal', attributes = {}, headers }: SpanOptions, operation: (span: ActiveSpan) => T): T {
      const active = context.active();
      const parent = headers === undefined ? active : propagation.extract(active, headers, headerGetter);
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes }, parent);
      return context.with(trace.setSpan(parent, span), () => runIn(span, operation));
    },
    headers() {
      const carrier: Record<string, string> = {};
      propagation.inject(context.active(), carrier);
      return carrier;
    },
  };
}

function runIn<T>(span: Span, operation: (span: ActiveSpan) => T): T {
  const failed = (error: unknown): never => {
    markFailed(span, error);
    span.end();
    throw error;
  };
  let result: T;
  try {
    result = operation({
      set: (attributes) => span.setAttributes(attributes),
      fail: (message) => span.setStatus({ code: SpanStatusCode.ERROR, message }),
    });
  } catch (error) {
    return failed(error);
  }
  if (!(result instanceof Promise)) {
    span.end();
    return result;
  }
  return result.then((value: unknown) => {
    span.end();
    return value;
  }, failed) as T;
}

/** A request that is rejected because of its content is not a failure of the operation. */
function markFailed(span: Span, error: unknown): void {
  const rejected = isStatusError(error) && error.code < 500;
  span.setAttribute('error.type', isStatusError(error) ? (error.status.reason ?? '') : ((error as Error)?.name ?? ''));
  if (rejected) return;
  span.recordException(error as Error);
  span.setStatus({ code: SpanStatusCode.ERROR, message: String((error as Error)?.message ?? error) });
}

/** The suffix `_seconds` of a metric's name is its unit. */
function unitOf(name: string): string {
  return name.includes('_seconds') ? 's' : name.includes('_bytes') ? 'By' : '1';
}

function bridgedMetrics(meter: Meter, others: Metrics): Metrics {
  const declared = new Map<string, unknown>();
  const reports: (() => void)[] = [];
  const once = <T>(name: string, make: () => T): T => {
    if (!declared.has(name)) declared.set(name, make());
    return declared.get(name) as T;
  };
  const instrument = ({ name, help }: MetricOptions) => [name, { description: help, unit: unitOf(name) }] as const;
  return {
    counter: (options) =>
      once(options.name, () => {
        const counter = meter.createCounter(...instrument(options));
        const other = others.counter(options);
        return {
          add: (value, labels) => {
            counter.add(value, labels);
            other.add(value, labels);
          },
        };
      }),
    gauge: (options) =>
      once(options.name, () => {
        const gauge = meter.createGauge(...instrument(options));
        const other = others.gauge(options);
        const values = new Map<string, number>();
        const record = (labels: Labels | undefined, next: (value: number) => number) => {
          const key = (options.labels ?? []).map((label) => labels?.[label] ?? '').join('\0');
          const value = next(values.get(key) ?? 0);
          values.set(key, value);
          gauge.record(value, labels);
        };
        return {
          set: (value, labels) => {
            record(labels, () => value);
            other.set(value, labels);
          },
          add: (value, labels) => {
            record(labels, (before) => before + value);
            other.add(value, labels);
          },
        };
      }),
    histogram: (options) =>
      once(options.name, () => {
        const [name, description] = instrument(options);
        const advice =
          options.buckets === undefined ? {} : { advice: { explicitBucketBoundaries: [...options.buckets] } };
        const histogram = meter.createHistogram(name, { ...description, ...advice });
        const other = others.histogram(options);
        return {
          observe: (value, labels) => {
            histogram.record(value, labels);
            other.observe(value, labels);
          },
        };
      }),
    // The SDK collects observable instruments first, so that reports are part of the same collection.
    beforeRead: (report) => {
      reports.push(report);
      if (reports.length > 1) return;
      const uptime = meter.createObservableGauge('process.uptime', {
        description: 'The time the process has been running.',
        unit: 's',
      });
      meter.addBatchObservableCallback(
        (result) => {
          for (const each of reports) each();
          result.observe(uptime, process.uptime());
        },
        [uptime],
      );
    },
    text: () => others.text(),
  };
}
