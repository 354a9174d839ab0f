import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly adapters: readonly string[];
  readonly scenarios: readonly string[];
  readonly rounds: number;
  readonly sliceMs: number;
  readonly objects: number;
  /** Watchers of a fan-out, and events of one of its rounds. */
  readonly watchers: number;
  readonly events: number;
  /** Folder for report.json and report.md. */
  readonly out: string;
  /** Keeps the figures that are in that folder, but for those that are measured again now. */
  readonly again: boolean;
  /** Compares Keelson with kube-apiserver instead of with floors. */
  readonly peers: boolean;
}

/** Objects with names that requests beside other servers know; more than there are clients. */
export const namedObjects = 256;

const known = ['memory', 'lmdb', 'etcd', 'postgres'];

/** Reads the words of the command line; throws an Error with a sentence for people. */
export function parseOptions(words: readonly string[], defaultOut: string): BenchOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      adapters: { type: 'string' },
      scenarios: { type: 'string', default: '' },
      rounds: { type: 'string', default: '7' },
      slice: { type: 'string', default: '1500' },
      objects: { type: 'string', default: '10000' },
      watchers: { type: 'string', default: '1000' },
      events: { type: 'string', default: '200' },
      out: { type: 'string', default: defaultOut },
      again: { type: 'boolean', default: false },
      peers: { type: 'boolean', default: false },
    },
  });
  const adapters = (values.adapters ?? (values.peers ? known.join(',') : 'memory,lmdb'))
    .split(',')
    .filter((name) => name !== '');
  const wrong = adapters.find((name) => !known.includes(name));
  if (wrong !== undefined) throw new Error(`--adapters knows ${known.join(', ')}, not ${wrong}`);
  const positive = (name: string, text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value <= 0)
      throw new Error(`--${name} must be a positive whole number, not ${text}`);
    return value;
  };
  const objects = positive('objects', values.objects);
  if (values.peers && objects < namedObjects)
    throw new Error(`--objects must be at least ${namedObjects} with --peers, not ${objects}`);
  return {
    adapters,
    scenarios: values.scenarios.split(',').filter((name) => name !== ''),
    rounds: positive('rounds', values.rounds),
    sliceMs: positive('slice', values.slice),
    objects,
    watchers: positive('watchers', values.watchers),
    events: positive('events', values.events),
    out: values.out,
    again: values.again,
    peers: values.peers,
  };
}
