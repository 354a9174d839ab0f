import type { PostgresAdapterOptions } from './adapter.ts';

const counts = ['readers', 'readTimeoutMs', 'writeTimeoutMs', 'connectTimeoutMs', 'partitionRevisions'] as const;
const flags = ['allowAsyncCommit', 'allowUnsafeServer', 'preparedStatements'] as const;
const texts = ['schema', 'listenUrl'] as const;
/** The driver's interpretation of a URL. */
const drivers: ReadonlySet<string> = new Set([
  'application_name',
  'host',
  'options',
  'password',
  'port',
  'sslcert',
  'sslkey',
  'sslmode',
  'sslnegotiation',
  'sslrootcert',
  'user',
  'uselibpqcompat',
]);

type Mutable = { -readonly [K in keyof PostgresAdapterOptions]: PostgresAdapterOptions[K] };

/**
 * Parses the part after `postgres:`, as in `postgres://user@host/database?schema=plane&notify=txn`. Parameters of the
 * store have the names of its options (and `minChanges`, `minAgeMs`); other parameters belong to the driver.
 *
 * @throws Error with a message for users
 */
export function parsePostgresUrl(rest: string): PostgresAdapterOptions {
  if (rest === '') return {};
  if (!rest.startsWith('//')) throw new Error('postgres: is followed by //user@host/database');
  const mark = rest.indexOf('?');
  const base = mark === -1 ? rest : rest.slice(0, mark);
  const options: Mutable = {};
  const kept = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(mark === -1 ? '' : rest.slice(mark + 1))) {
    if (drivers.has(name)) kept.append(name, value);
    else take(options, name, value);
  }
  const query = kept.toString();
  return { url: `postgres:${base}${query === '' ? '' : `?${query}`}`, ...options };
}

function take(options: Mutable, name: string, value: string): void {
  if (name === 'notify') {
    if (value !== 'after' && value !== 'txn' && value !== 'off')
      throw new Error(`notify must be after, txn or off, got ${value}`);
    options.notify = value;
  } else if (name === 'minChanges' || name === 'minAgeMs') {
    options.history = { ...options.history, [name]: count(name, value) };
  } else if (isIn(texts, name)) {
    options[name] = value;
  } else if (isIn(counts, name)) {
    options[name] = count(name, value);
  } else if (isIn(flags, name)) {
    if (value !== 'true' && value !== 'false') throw new Error(`${name} must be true or false, got ${value}`);
    options[name] = value === 'true';
  } else {
    throw new Error(`the postgres URL has an unknown parameter ${JSON.stringify(name)}`);
  }
}

function isIn<const N extends readonly string[]>(names: N, name: string): name is N[number] {
  return names.includes(name);
}

function count(name: string, value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw new Error(`${name} must be a whole number, got ${value}`);
  return Number(value);
}
