import type { ConnectionLimits } from './connection-limits.ts';
import type { MemoryBudgets } from './memory-budgets.ts';
import {
  type HistoryWindow,
  type ReadMode,
  readModes,
  type StorageChoice,
  type WatchWindow,
} from './storage-choice.ts';

/** The options of `keelson serve` and `keelson up`, merged from all sources. */
export interface ServerOptions {
  /** One store (a URL, or an adapter with its options), or a default store and routes for kinds in other stores. */
  readonly storage: StorageChoice;
  /** The history window of every store without its own setting. */
  readonly history?: HistoryWindow;
  /** Limits of the latest changes that the watch caches keep in memory, per kind and in total. */
  readonly watchWindow?: WatchWindow;
  /** Memory for data that is kept to save repeated work, of the whole server. */
  readonly memoryBudgets?: MemoryBudgets;
  /** The state that gets and lists without a resourceVersion return, for every store without its own setting. */
  readonly reads: ReadMode;
  /** Accept a store other than the one recorded in the data directory. */
  readonly acceptNewStore: boolean;
  /** Run the built-in controllers in this process. Of several servers on one store one runs them. */
  readonly controllers: boolean;
  /** Run a node agent beside the server; an option of `keelson up`. Undefined: the default of the command. */
  readonly agent?: boolean;
  /** File with the authorities of node agents' certificates. Undefined: the certificates are not verified. */
  readonly agentCertificateAuthority?: string;
  readonly listen: ListenAddress;
  /** Plain HTTP without authentication, loopback only. */
  readonly insecure: boolean;
  /** Host names without ports that the insecure server accepts in addition to those of the loopback interface. */
  readonly allowedHosts: readonly string[];
  /** File of bearer tokens and their users. Undefined: no token is valid. */
  readonly tokenAuthFile?: string;
  /** Directory for certificates, the kubeconfig, keys and (by default) the store. */
  readonly data: string;
  /** Modules whose default export is a kind or a list of kinds, served in addition to the built-in kinds. */
  readonly kinds: readonly string[];
  readonly logLevel: LogLevel;
  readonly brand: { readonly vendor: string; readonly metaGroup: string };
  /** Limits on the connections of clients and timeouts of their states. */
  readonly connectionLimits?: Partial<ConnectionLimits>;
  /** Lifetime of the continue token of a chunked list. */
  readonly continueTokenLifetimeMs: number;
}

export interface ListenAddress {
  readonly host: string;
  /** 0: the operating system chooses the port. */
  readonly port: number;
}

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * One option: its names and its description. The command line parser, the help text and the reference page use this
 * table.
 */
export interface OptionRow {
  /** Name in the config file. */
  readonly key: keyof ServerOptions | 'config';
  /** Name on the command line; absent = config file only. */
  readonly flag?: string;
  readonly env?: string;
  /** Placeholder of the value in the help text; absent for a switch. */
  readonly value?: string;
  readonly repeatable?: boolean;
  readonly default: string;
  readonly help: string;
}

export const optionTable: readonly OptionRow[] = [
  {
    key: 'config',
    flag: '--config',
    env: 'KEELSON_CONFIG',
    value: 'FILE',
    default: '',
    help: 'YAML or JSON file with the keys of this table',
  },
  {
    key: 'storage',
    flag: '--storage',
    env: 'KEELSON_STORAGE',
    value: 'URL',
    default: 'lmdb: under --data',
    help: 'memory: | lmdb:PATH | etcd://H:P[,H:P...] | postgres://...',
  },
  {
    key: 'reads',
    flag: '--reads',
    env: 'KEELSON_READS',
    value: 'MODE',
    default: 'consistent',
    help: `${readModes.join(' | ')}: state that a get or list without resourceVersion returns, the newest or the cached one`,
  },
  {
    key: 'history',
    default: 'minChanges: 1000, minAge: 5m',
    help: 'history kept for watches and pages, by count and by age, whichever keeps more; not supported by every adapter',
  },
  {
    key: 'watchWindow',
    default: 'maxEvents: 20000, maxBytes: 33554432, maxTotalBytes: 134217728, maxAge: 5m',
    help: 'changes kept in memory for watches, per kind (maxTotalBytes: in total); older ones are read from the store',
  },
  {
    key: 'memoryBudgets',
    default: [
      'derivedFormsBytes: 33554432, watchFramesBytes: 16777216, listBlocksBytes: 67108864',
      'selectorIndexesBytes: 67108864, listBuffersBytes: 4194304, compressedListsBytes: 16777216, recentBodiesBytes: 4194304',
    ].join(', '),
    help: 'memory, in bytes, for data that is kept to save repeated work; a smaller budget costs CPU time',
  },
  {
    key: 'acceptNewStore',
    flag: '--accept-new-store',
    env: 'KEELSON_ACCEPT_NEW_STORE',
    default: 'false',
    help: 'accept a store that differs from the one previously used under the same name',
  },
  {
    key: 'controllers',
    flag: '--controllers',
    env: 'KEELSON_CONTROLLERS',
    default: 'true',
    help: 'run the built-in controllers in this process; use --controllers=false when another server runs them',
  },
  {
    key: 'agent',
    flag: '--agent',
    env: 'KEELSON_AGENT',
    default: 'true with up',
    help: 'keelson up only: run the pods of one node as processes of this machine; --agent=false disables the node',
  },
  {
    key: 'agentCertificateAuthority',
    flag: '--agent-certificate-authority',
    env: 'KEELSON_AGENT_CERTIFICATE_AUTHORITY',
    value: 'FILE',
    default: '',
    help: 'authorities of the serving certificates of node agents (PEM); without it the certificates are not verified',
  },
  {
    key: 'listen',
    flag: '--listen',
    env: 'KEELSON_LISTEN',
    value: 'HOST:PORT',
    default: '127.0.0.1:6443',
    help: 'address to serve on; with port 0 the system chooses the port',
  },
  {
    key: 'insecure',
    flag: '--insecure',
    env: 'KEELSON_INSECURE',
    default: 'false',
    help: 'plain HTTP without authentication; loopback addresses only',
  },
  {
    key: 'allowedHosts',
    flag: '--allowed-host',
    env: 'KEELSON_ALLOWED_HOSTS',
    value: 'HOST',
    repeatable: true,
    default: '',
    help: 'host name or address that --insecure accepts in addition to localhost, 127.0.0.0/8 and [::1], without a port',
  },
  {
    key: 'tokenAuthFile',
    flag: '--token-auth-file',
    env: 'KEELSON_TOKEN_AUTH_FILE',
    value: 'FILE',
    default: 'none',
    help: 'accepted bearer tokens, one `token,user,uid,"group1,group2"` per line; read when the server starts',
  },
  {
    key: 'data',
    flag: '--data',
    env: 'KEELSON_DATA',
    value: 'DIR',
    default: './.keelson',
    help: 'directory of certificates, kubeconfig and the embedded store',
  },
  {
    key: 'kinds',
    flag: '--kinds',
    env: 'KEELSON_KINDS',
    value: 'MODULE',
    repeatable: true,
    default: '',
    help: 'module that exports kinds to serve in addition to the built-in ones',
  },
  {
    key: 'logLevel',
    flag: '--log-level',
    env: 'KEELSON_LOG_LEVEL',
    value: 'LEVEL',
    default: 'info',
    help: logLevels.join(' | '),
  },
  {
    key: 'brand',
    default: 'vendor: kubernetes, metaGroup: meta.k8s.io',
    help: 'names used in media types and as the group of the metadata API',
  },
  {
    key: 'connectionLimits',
    default: [
      'connections: 3/4 of the descriptors, connectionsPerAddress: 3/4 of connections, streams: 100',
      'streamResetBurst: 200, streamResetsPerSecond: 50, handshake: 10s, idle: 90s, headers: 10s, request: 60s',
      'unreadAnswer: 2m, linger: 10s, ping: 30s',
    ].join(', '),
    help: 'limits of connections and streams, and timeouts of their states; idle connections are closed for new ones',
  },
  { key: 'continueTokenLifetimeMs', default: '300000', help: 'lifetime of a continue token in milliseconds' },
];
