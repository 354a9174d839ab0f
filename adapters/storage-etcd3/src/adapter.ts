import { ClockToken, LoggerToken, MetricsToken } from '@keelson/core/runtime';
import type { StorageAdapter } from '@keelson/core/storage-adapter';
import { StoreToken } from '@keelson/core/storage-adapter';
import { type Etcd3AdapterOptions, optionsSchema } from './adapter-options.ts';
import { Etcd3Store, type Etcd3StoreOptions } from './etcd3-store.ts';
import { parseUrl } from './parse-url.ts';

/** The adapter behind `--storage etcd://HOST:PORT/PREFIX` and, with TLS, `etcds:`. */
export const etcd3Adapter: StorageAdapter<Etcd3AdapterOptions> = {
  name: 'etcd',
  optionsSchema,
  parseUrl: (url, scheme) => parseUrl(url, scheme === 'etcds'),
  module: (options) => (bind) => {
    bind(StoreToken, [ClockToken, LoggerToken, MetricsToken], (clock, logger, metrics) => {
      return new Etcd3Store({ ...storeOptions(options), clock, logger, metrics });
    });
  },
};

function storeOptions(options: Etcd3AdapterOptions): Etcd3StoreOptions {
  const { hosts, prefix, tls, username, password, history, compaction } = options;
  if ((username === undefined) !== (password === undefined))
    throw new Error('etcd: username and password belong together');
  const scheme = tls === undefined ? 'http' : 'https';
  return {
    endpoints: hosts.map((host) => `${scheme}://${host}`),
    ...(prefix === undefined ? {} : { prefix }),
    ...(tls === undefined ? {} : { tls }),
    ...(username === undefined || password === undefined ? {} : { auth: { username, password } }),
    ...(history === undefined ? {} : { history }),
    ...(compaction === undefined ? {} : { compaction }),
  };
}
