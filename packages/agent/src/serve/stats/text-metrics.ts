import type { Labels, MetricOptions, Metrics } from '@keelson/core';

const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');

function labelText(names: readonly string[], labels: Labels | undefined): string {
  return names.map((name) => `${name}="${escaped(labels?.[name] ?? '')}"`).join(',');
}

const series = (name: string, labels: string): string => (labels === '' ? name : `${name}{${labels}}`);
const joined = (labels: string, more: string): string => (labels === '' ? more : `${labels},${more}`);

interface Metric {
  lines(): string[];
}

/** Sums by label values. */
class Sums implements Metric {
  readonly #options: MetricOptions;
  readonly #values = new Map<string, number>();

  constructor(options: MetricOptions) {
    this.#options = options;
  }

  add(value: number, labels?: Labels): void {
    const key = labelText(this.#options.labels ?? [], labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + value);
  }

  set(value: number, labels?: Labels): void {
    this.#values.set(labelText(this.#options.labels ?? [], labels), value);
  }

  lines(): string[] {
    const { name, labels = [] } = this.#options;
    if (this.#values.size === 0 && labels.length === 0) return [`${name} 0`];
    return [...this.#values].map(([key, value]) => `${series(name, key)} ${value}`);
  }
}

class Buckets implements Metric {
  readonly #options: MetricOptions;
  readonly #bounds: readonly number[];
  readonly #values = new Map<string, { counts: number[]; sum: number; count: number }>();

  constructor(options: MetricOptions) {
    this.#options = options;
    this.#bounds = options.buckets ?? defaultBuckets;
  }

  observe(value: number, labels?: Labels): void {
    const key = labelText(this.#options.labels ?? [], labels);
    let entry = this.#values.get(key);
    if (entry === undefined) {
      entry = { counts: this.#bounds.map(() => 0), sum: 0, count: 0 };
      this.#values.set(key, entry);
    }
    entry.sum += value;
    entry.count += 1;
    const at = this.#bounds.findIndex((bound) => value <= bound);
    if (at >= 0) entry.counts[at] = (entry.counts[at] ?? 0) + 1;
  }

  lines(): string[] {
    const { name } = this.#options;
    return [...this.#values].flatMap(([key, { counts, sum, count }]) => {
      let upTo = 0;
      const rows = this.#bounds.map((bound, index) => {
        upTo += counts[index] ?? 0;
        return `${series(`${name}_bucket`, joined(key, `le="${bound}"`))} ${upTo}`;
      });
      return [
        ...rows,
        `${series(`${name}_bucket`, joined(key, 'le="+Inf"'))} ${count}`,
        `${series(`${name}_sum`, key)} ${sum}`,
        `${series(`${name}_count`, key)} ${count}`,
      ];
    });
  }
}

/** Metrics kept in memory and written in the Prometheus text format. */
export function createTextMetrics(): Metrics {
  const known = new Map<string, { readonly type: string; readonly help: string; readonly metric: Metric }>();
  const once = <M extends Metric>(type: string, options: MetricOptions, make: () => M): M => {
    const entry = known.get(options.name) ?? { type, help: options.help, metric: make() };
    if (entry.type !== type) throw new Error(`the metric ${options.name} is a ${entry.type}, not a ${type}`);
    known.set(options.name, entry);
    return entry.metric as M;
  };
  return {
    counter: (options) => once('counter', options, () => new Sums(options)),
    gauge: (options) => once('gauge', options, () => new Sums(options)),
    histogram: (options) => once('histogram', options, () => new Buckets(options)),
    async text() {
      const rows = [...known].flatMap(([name, { type, help, metric }]) => [
        `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
        `# TYPE ${name} ${type}`,
        ...metric.lines(),
      ]);
      return rows.length === 0 ? '' : `${rows.join('\n')}\n`;
    },
  };
}
