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
}

const known = ['memory', 'lmdb', 'etcd', 'postgres'];

/** Reads the words of the command line; throws an Error with a sentence for people. */
export function parseOptions(words: readonly string[], defaultOut: string): BenchOptions {
  const { values } = parseArgs({
    args: [...words],
    options: {
      adapters: { type: 'string', default: 'memory,lmdb' },
      scenarios: { type: 'string', default: '' },
      rounds: { type: 'string', default: '7' },
      slice: { type: 'string', default: '1500' },
      objects: { type: 'string', default: '10000' },
      watchers: { type: 'string', default: '1000' },
      events: { type: 'string', default: '200' },
      out: { type: 'string', default: defaultOut },
      again: { type: 'boolean', default: false },
    },
  });
  const adapters = values.adapters.split(',').filter((name) => name !== '');
  const wrong = adapters.find((name) => !known.includes(name));
  if (wrong !== undefined) throw new Error(`--adapters knows ${known.join(', ')}, not ${wrong}`);
  const positive = (name: string, text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value <= 0)
      throw new Error(`--${name} must be a positive whole number, not ${text}`);
    return value;
  };
  return {
    adapters,
    scenarios: values.scenarios.split(',').filter((name) => name !== ''),
    rounds: positive('rounds', values.rounds),
    sliceMs: positive('slice', values.slice),
    objects: positive('objects', values.objects),
    watchers: positive('watchers', values.watchers),
    events: positive('events', values.events),
    out: values.out,
    again: values.again,
  };
}
