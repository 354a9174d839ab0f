import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { KubeObject } from '@keelson/core';
import {
  type AnyOption,
  bool,
  didYouMean,
  duration,
  flagsHelp,
  integer,
  listOf,
  mergeValues,
  parseArguments,
  parseConfigDocument,
  text,
  UsageError,
  type ValueType,
} from '@keelson/core/internal';
import { scenarioNames } from './scenarios.ts';

/** Options of a benchmark: what is measured, and for how long. An absent option has the default of `keelson bench`. */
export interface BenchOptions {
  /**
   * Storages, each served by a server of its own: a URL as of `--storage`, the path or name of an adapter's package, or
   * an adapter with its options as JSON. Default, without servers: `memory:` and `lmdb:` in a temporary directory.
   */
  readonly storages?: readonly string[];
  /** Addresses of running servers that accept requests without credentials. */
  readonly urls?: readonly string[];
  /** Kubeconfig files of running servers; their current contexts are used. */
  readonly kubeconfigs?: readonly string[];
  /** Modules that export kinds, for the servers of the storages. */
  readonly kinds?: readonly string[];
  /** The object of which copies are written. Default: a ConfigMap of about 1 KB. */
  readonly object?: KubeObject;
  /** Names of scenarios. Default: all. */
  readonly scenarios?: readonly string[];
  /** True: the rounds are shorter, and there are fewer rounds. */
  readonly quick?: boolean;
  /** Number of objects that are created before the first measurement. */
  readonly objects?: number;
  /** Number of connections that send requests concurrently. */
  readonly clients?: number;
  readonly watchers?: number;
  readonly rounds?: number;
  /** Duration of one round of one scenario. */
  readonly roundMs?: number;
}

/** The options of a benchmark, with the default of every absent one. */
export type BenchPlan = Required<BenchOptions>;

/** A ConfigMap of the size of a usual small object. */
const defaultObject: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'sample' },
  ...{ data: Object.fromEntries(Array.from({ length: 8 }, (_, index) => [`key-${index}`, 'x'.repeat(100)])) },
};

/** @throws UsageError */
export function benchPlan(given: BenchOptions): BenchPlan {
  const { urls = [], kubeconfigs = [], quick = false } = given;
  const alone = urls.length + kubeconfigs.length === 0;
  const unknown = (given.scenarios ?? []).find((name) => !scenarioNames.includes(name));
  if (unknown !== undefined)
    throw new UsageError(
      `unknown scenario ${JSON.stringify(unknown)}${didYouMean(unknown, scenarioNames, `; use ${scenarioNames.join(', ')}`)}`,
    );
  if ((given.kinds ?? []).length > 0 && given.object === undefined)
    throw new UsageError('--kinds requires --object FILE, an object of such a kind');
  return {
    storages: given.storages ?? (alone ? ['memory:', 'lmdb:'] : []),
    urls,
    kubeconfigs,
    kinds: given.kinds ?? [],
    object: given.object ?? defaultObject,
    scenarios: given.scenarios ?? scenarioNames,
    quick,
    objects: given.objects ?? (quick ? 500 : 2000),
    clients: given.clients ?? 16,
    watchers: given.watchers ?? 20,
    rounds: given.rounds ?? (quick ? 3 : 5),
    roundMs: given.roundMs ?? (quick ? 500 : 2000),
  };
}

/** Each occurrence of the flag is one value: addresses of etcd contain commas. */
const each = (name: string): ValueType<readonly string[]> => ({
  name,
  parse: (value, source, earlier = []) => {
    if (value === '') throw new UsageError(`${source} must not be empty`);
    return [...earlier, value];
  },
  fromFile: () => [],
  format: (values) => values.join(' '),
});

const row = (name: string, flag: string, type: AnyOption['type'], help: string, shownDefault = ''): AnyOption => ({
  ...{ name, flag, type, help, default: undefined },
  ...(shownDefault === '' ? {} : { shownDefault }),
});

const table: readonly AnyOption[] = [
  row(
    'storages',
    '--storage',
    each('URL|ADAPTER'),
    'storage URL, package or path of an adapter, or JSON such as \'{"adapter":"./a.js","path":"x"}\'; may be repeated',
    'memory: and lmdb: without --url and --kubeconfig',
  ),
  row('urls', '--url', each('URL'), 'running server without authentication, to be measured as well; may be repeated'),
  row('kubeconfigs', '--kubeconfig', each('FILE'), 'kubeconfig of a running server; may be repeated'),
  row('kinds', '--kinds', each('MODULE'), 'module that exports kinds, for the servers of --storage; may be repeated'),
  row(
    'object',
    '--object',
    text,
    'file with the object (YAML or JSON) whose copies are written',
    'a ConfigMap of 1 KB',
  ),
  row(
    'scenarios',
    '--scenarios',
    listOf('NAMES', (name) => name),
    `some of ${scenarioNames.join(', ')}`,
    'all',
  ),
  row('quick', '--quick', bool, 'fewer and shorter rounds: less than two minutes for two storages'),
  row('objects', '--objects', integer('N', 10, 1_000_000), 'objects that exist at first', '2000, quick: 500'),
  row('clients', '--clients', integer('N', 1, 1000), 'connections that send requests at the same time', '16'),
  row('watchers', '--watchers', integer('N', 1, 1000), 'watches that receive each change', '20'),
  row('rounds', '--rounds', integer('N', 1, 1000), 'rounds; servers take turns in each', '5, quick: 3'),
  row('roundMs', '--round', duration, 'duration of a round of a scenario on a server', '2s, quick: 500ms'),
  row('out', '--out', text, 'directory for report.html and report.json', './keelson-bench'),
];

export const benchHelp = `keelson bench [options]

Measures storages and running servers side by side, with copies of one object, and writes a report with plots. Each
storage is served by a keelson serve of its own. Objects are in a namespace of the benchmark and deleted at the end.

Options:
${flagsHelp(table)}`;

/** The options of a command line, and the directory of the report. @throws UsageError */
export async function parseBenchOptions(
  words: readonly string[],
): Promise<{ readonly options: BenchOptions; readonly out: string }> {
  const { given } = parseArguments(words, table, 'keelson bench');
  const { object, out, ...values } = mergeValues(table, given);
  const options = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
  if (object !== undefined) options['object'] = await readObject(String(object));
  return { options, out: resolve(String(out ?? 'keelson-bench')) };
}

async function readObject(path: string): Promise<KubeObject> {
  const source = `--object ${path}`;
  const bytes = await readFile(path).catch((error: Error) => {
    throw new UsageError(`${source} cannot be read: ${error.message}`);
  });
  const object = parseConfigDocument(bytes, source) as KubeObject;
  if (typeof object.apiVersion !== 'string' || typeof object.kind !== 'string')
    throw new UsageError(`${source} must contain an object with apiVersion and kind`);
  return object;
}
